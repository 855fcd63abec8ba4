"""The six sample kinds. The importer and the training stages validate with these very classes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from steerboard_contracts.attribute_names import MOST_ATTRIBUTES, SCORE, AttributeName
from steerboard_contracts.errors import BadRow, ErrorLocation
from steerboard_contracts.step_labels import StepLabels
from steerboard_contracts.tools import ToolCall, Tools, answer_parts, calls_text
from steerboard_contracts.wording import counted

SampleKind = Literal["instructions", "preferences", "unpaired", "prompts", "labelled", "stepwise"]
Split = Literal["train", "held_out"]
Half = Literal["a", "b"]


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


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("is not a finite number")
    return value


def _reward(value: float) -> float:
    if abs(value) > LARGEST_REWARD:
        raise ValueError(f"is larger than {LARGEST_REWARD:g}")
    return value


TurnText = Annotated[str, AfterValidator(_turn_text)]
Finite = Annotated[float, AfterValidator(_finite)]
# Sums of squares, and figures between two rewards, stay finite.
LARGEST_REWARD = 1e100
Reward = Annotated[Finite, AfterValidator(_reward)]


def _grades(values: dict[str, float]) -> dict[str, float]:
    """The grades in the order of their names: what is stored as JSON forgets another one."""
    if not values:
        raise ValueError("has no values; leave the field out")
    if len(values) > MOST_ATTRIBUTES:
        raise ValueError(f"has more than {MOST_ATTRIBUTES} attributes")
    if SCORE in values:
        raise ValueError(f"`{SCORE}` is the reward of the row; give another attribute that name")
    return {name: values[name] + 0.0 for name in sorted(values)}  # no negative zero, which JSONB does not know


def _no_truth(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("is not a whole number")
    return value


def _no_truth_for_grade(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("is not a number")
    return value


Grade = Annotated[Reward, BeforeValidator(_no_truth_for_grade)]
Attributes = Annotated[dict[AttributeName, Grade], AfterValidator(_grades)]


# Numbers that JavaScript holds exactly.
Place = Annotated[int, BeforeValidator(_no_truth), Field(ge=0, lt=2**53)]


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
_AS_TEXT, _AS_CALLS = "an answer as text", "an answer with calls"


def _plain_answer(answer: Any) -> Any:
    """A message without calls is its text, so that there is one way to write an answer."""
    if isinstance(answer, dict) and not answer.get("tool_calls") and answer.keys() <= {"role", "content", "tool_calls"}:
        return answer.get("content", answer) if answer.get("role", "assistant") == "assistant" else answer
    return answer


def _form_of_answer(answer: Any) -> str:
    return _AS_CALLS if isinstance(answer, dict | AnswerMessage) else _AS_TEXT


# The answer to a prompt: a text, or a turn that calls tools.
Answer = Annotated[
    Annotated[TurnText, Tag(_AS_TEXT)] | Annotated[AnswerMessage, Tag(_AS_CALLS)],
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


class Sample(BaseModel):
    """What every kind shares: a prompt, always a list of messages that ends with a user turn or a tool's result."""

    model_config = ConfigDict(extra="forbid")

    prompt: SamplePrompt


class PromptSample(Sample):
    reference: TurnText | None = None


class AnswerSample(Sample):
    """A response to its prompt, perhaps one of several.

    Rows of one dataset with the same `group` answer the same prompt: the row that was asked, so that two prompts of
    equal text are two groups. `candidate` counts a group's responses from 0; one that was empty leaves a gap.
    """

    group: Place | None = None
    candidate: Place | None = None

    @model_validator(mode="after")
    def _both_or_neither(self) -> AnswerSample:
        if (self.group is None) != (self.candidate is None):
            given, missing = ("group", "candidate") if self.candidate is None else ("candidate", "group")
            raise ValueError(f"has a {given} without a {missing}")
        return self


def _parts(answer: str | AnswerMessage) -> tuple[str, str]:
    return answer_parts(answer if isinstance(answer, str) else answer.model_dump())


class InstructionSample(AnswerSample):
    """`source` names the dataset a mixture took the row from; absent in plain instruction files."""

    response: Answer
    source: TurnText | None = None


class PreferenceSample(Sample):
    """`source` is where a pair is from, such as a benchmark's subset."""

    chosen: Answer
    rejected: Answer
    margin: Finite | None = None
    source: TurnText | None = None

    @property
    def equal_sides(self) -> bool:
        """Whether texts, without the space around them, and calls are the same."""
        return _parts(self.chosen) == _parts(self.rejected)


class UnpairedSample(AnswerSample):
    response: Answer
    desirable: bool


class LabelledSample(AnswerSample):
    """`reward` is the raw value of the pinned reward source; z-scores come from the dataset's normaliser.

    `attributes`: grades of the response by name, such as its verbosity; one that no one gave is absent. A row has a
    reward, attributes, or both. `item` is a benchmark's own name of the prompt.
    """

    response: Answer
    source: TurnText
    item: TurnText | None = None
    attributes: Attributes | None = None
    reward: Reward | None = None

    @model_validator(mode="after")
    def _graded(self) -> LabelledSample:
        if self.reward is None and self.attributes is None:
            raise ValueError("needs a `reward`, or `attributes`")
        return self

    @model_validator(mode="before")
    @classmethod
    def _default_source(cls, value: Any) -> Any:
        return {**value, "source": "imported"} if isinstance(value, dict) and value.get("source") is None else value


class StepwiseSample(Sample):
    """An answer by its steps, each with a label: TRL's stepwise supervision."""

    completions: Annotated[list[TurnText], Field(min_length=1)]
    labels: StepLabels
    source: TurnText | None = None

    @field_validator("labels")
    @classmethod
    def _one_for_each_step(cls, labels: list[bool | float], info: ValidationInfo) -> list[bool | float]:
        steps = info.data.get("completions")
        if steps is not None and len(labels) != len(steps):
            raise ValueError(f"has {counted(len(labels), 'label')} for {counted(len(steps), 'step')}")
        return labels


SAMPLE_CLASSES: dict[SampleKind, type[Sample]] = {
    "instructions": InstructionSample,
    "preferences": PreferenceSample,
    "unpaired": UnpairedSample,
    "prompts": PromptSample,
    "labelled": LabelledSample,
    "stepwise": StepwiseSample,
}
# The answers of a sample, of whichever kind.
ANSWERS = ("response", "chosen", "rejected")
# Which response to its prompt a row is: fields that come in pairs or not at all.
GROUP_FIELDS = ("group", "candidate")
# Grades of a response, by name.
ATTRIBUTES = "attributes"


# Pydantic's types of errors, in words that follow the name of a field.
_WORDS = {
    "missing": "is missing",
    "extra_forbidden": "is not a field of this kind",
    "string_type": "is not a text",
    "list_type": "is not a list",
    "dict_type": "is not an object",
    "model_type": "is not an object",
    "model_attributes_type": "is not an object",
    "bool_type": "is neither true nor false",
    "bool_parsing": "is neither true nor false",
    "float_type": "is not a number",
    "float_parsing": "is not a number",
    "int_type": "is not a whole number",
    "int_parsing": "is not a whole number",
    "int_from_float": "is not a whole number",
    "int_parsing_size": "has too many digits",
    "literal_error": "is none of {expected}",
    "greater_than_equal": "is less than {ge}",
    "less_than": "is {lt} or more",
    "string_pattern_mismatch": "does not match {pattern}",
    "string_too_long": "has more than {max_length} characters",
    "too_short": "has fewer than {min_length}",
    "string_too_short": "has fewer than {min_length} characters",
}


def sample_faults(error: ValidationError) -> list[tuple[str, str]]:
    """What is wrong with which field: `("chosen", "is empty")`."""
    faults = []
    for problem in error.errors(include_url=False, include_input=False):
        field = ".".join(str(part) for part in problem["loc"] if part not in (_AS_TEXT, _AS_CALLS)) or "row"
        words = _WORDS.get(problem["type"])
        context = problem.get("ctx", {})
        faults.append((field, words.format(**context) if words else problem["msg"].removeprefix("Value error, ")))
    return faults


def sample_problems(error: ValidationError) -> str:
    """A validation error as one line a person can act on: `chosen: is empty; margin: is not a finite number`."""
    return "; ".join(f"{field}: {words}" for field, words in sample_faults(error))


def validate_sample(kind: SampleKind, row: object, line: int) -> Sample:
    """Check one row. Raises `BadRow` that names the line and each field at fault."""
    try:
        return SAMPLE_CLASSES[kind].model_validate(row)
    except ValidationError as error:
        reason = sample_problems(error)
        raise BadRow(
            f"line {line} is not a valid {kind} sample: {reason}",
            errors=[ErrorLocation(location=f"line {line}", message=reason)],
        ) from error


def canonical_prompt(prompt: Sequence[Message | SampleMessage]) -> str:
    """The text that identifies a prompt: roles, contents, and calls of tools. The tools that are offered are left out,
    so that a question is held out with whatever tools it comes."""
    turns = [[m.role, m.content, *_calls(m)] for m in prompt]
    return json.dumps(turns, ensure_ascii=False, separators=(",", ":"))


def _calls(message: Message | SampleMessage) -> list[str]:
    calls = message.tool_calls if isinstance(message, SampleMessage) else None
    return [calls_text({"tool_calls": [call.model_dump() for call in calls]})] if calls else []


def prompt_hash(prompt: Sequence[Message | SampleMessage], salt: str) -> int:
    """Signed 64-bit hash of a prompt under the project's salt; decides split and half."""
    digest = hashlib.sha256(f"{salt}\x00{canonical_prompt(prompt)}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def is_held_out(hash64: int, fraction: float) -> bool:
    """Whether a prompt belongs to the held-out split. Reads the upper 63 bits, `half_of` the lowest."""
    return ((hash64 + 2**63) >> 1) < fraction * 2.0**63


def half_of(hash64: int) -> Half:
    """Which of two disjoint halves a prompt falls into, for a reward model and its independent twin."""
    return "a" if hash64 & 1 == 0 else "b"
