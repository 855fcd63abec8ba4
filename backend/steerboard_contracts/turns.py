"""Turns of prompts and answers, as samples hold them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from steerboard_contracts.tools import ToolCall, Tools


def _clean_text(text: str) -> str:
    if "\x00" in text:
        raise ValueError("contains a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("contains a lone surrogate, which is not valid Unicode") from error
    return text


def _turn_text(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty")
    return _clean_text(text)


TurnText = Annotated[str, AfterValidator(_turn_text)]


class Message(BaseModel):
    """One turn of a conversation."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["system", "user", "assistant"]
    content: TurnText


def _absent() -> Any:
    """Null by default, and left out where it is."""
    return Field(None, exclude_if=lambda value: value is None)


class SampleMessage(BaseModel):
    """One turn of a sample's prompt. An assistant's may call tools, and then needs no text; one of the role `tool` is
    the result of a call, and may be empty. The first turn holds the `tools` that the conversation offers."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["system", "user", "assistant", "tool"]
    tool_calls: Annotated[list[ToolCall], Field(min_length=1, max_length=128)] | None = _absent()
    tool_call_id: Annotated[str, Field(min_length=1, max_length=200)] | None = _absent()
    name: Annotated[str, Field(min_length=1, max_length=200)] | None = _absent()
    tools: Tools | None = _absent()
    content: Annotated[str, AfterValidator(_clean_text)]

    @field_validator("content")
    @classmethod
    def _says_something(cls, content: str, info: ValidationInfo) -> str:
        silent = info.data.get("role") == "tool" or info.data.get("tool_calls") is not None
        return content if silent else _turn_text(content)

    @model_validator(mode="after")
    def _fields_of_its_role(self) -> SampleMessage:
        if self.tool_calls is not None and self.role != "assistant":
            raise ValueError(f"has tool_calls as a {self.role} turn: only an assistant calls tools")
        for field in ("tool_call_id", "name"):
            if getattr(self, field) is not None and self.role != "tool":
                raise ValueError(f"has `{field}` as a {self.role} turn: only results of tools have one")
        return self


class AnswerMessage(BaseModel):
    """An answer that calls tools, with or without a text before its calls: the last turn of its conversation."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["assistant"] = "assistant"
    content: Annotated[str, AfterValidator(_clean_text)] = ""
    tool_calls: Annotated[list[ToolCall], Field(min_length=1, max_length=128)]


# Parts of the places of faults that say which of the two an answer was read as.
AS_TEXT, AS_CALLS = "an answer as text", "an answer with calls"


def _plain_answer(answer: Any) -> Any:
    """A message without calls is its text, so that there is one way to write an answer."""
    if isinstance(answer, dict) and not answer.get("tool_calls") and answer.keys() <= {"role", "content", "tool_calls"}:
        return answer.get("content", answer) if answer.get("role", "assistant") == "assistant" else answer
    return answer


def _form_of_answer(answer: Any) -> str:
    message = isinstance(answer, dict) and not answer.keys().isdisjoint(AnswerMessage.model_fields)
    return AS_CALLS if message or isinstance(answer, AnswerMessage) else AS_TEXT


# The answer to a prompt: a text, or a turn that calls tools.
Answer = Annotated[
    Annotated[TurnText, Tag(AS_TEXT)] | Annotated[AnswerMessage, Tag(AS_CALLS)],
    Discriminator(_form_of_answer),
    BeforeValidator(_plain_answer),
]


def _as_messages(prompt: Any) -> Any:
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    if not isinstance(prompt, list):
        raise ValueError("is neither a text nor a list of messages")
    return prompt


def _check_turns(prompt: list[Message]) -> list[Message]:
    if not prompt:
        raise ValueError("has no turns")
    if prompt[-1].role != "user":
        raise ValueError("must end with a user turn")
    if any(message.role == "system" for message in prompt[1:]):
        raise ValueError("may have a system turn only at its start")
    return prompt


def _check_sample_turns(prompt: list[SampleMessage]) -> list[SampleMessage]:
    if not prompt:
        raise ValueError("has no turns")
    if prompt[-1].role not in ("user", "tool"):
        raise ValueError("must end with a user turn, or the result of a tool")
    if any(message.role == "system" for message in prompt[1:]):
        raise ValueError("may have a system turn only at its start")
    if any(message.tools is not None for message in prompt[1:]):
        raise ValueError("may have tools only in its first turn")
    for before, message in zip([None, *prompt], prompt, strict=False):
        if message.role == "tool" and (before is None or before.role not in ("assistant", "tool")):
            raise ValueError("has the result of a tool that does not follow an assistant turn")
    return prompt


PromptMessages = Annotated[list[Message], BeforeValidator(_as_messages), AfterValidator(_check_turns)]
SamplePrompt = Annotated[list[SampleMessage], BeforeValidator(_as_messages), AfterValidator(_check_sample_turns)]
