"""Tools that a conversation offers, and calls of them, as samples keep them.

Schemas and arguments are kept as JSON texts: a JSON column forgets the order of an object's fields, and a chat template
writes them in the order that they have. The shape of a call is that of OpenAI's chat completions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from steerboard_contracts.errors import BadInput

# The most characters of a conversation's tools, and of one call's arguments.
LONGEST_TOOLS = 1_000_000
# The fields of a turn that only conversations with tools have, in the order in which they are stored.
TOOL_FIELDS = ("tool_calls", "tool_call_id", "name", "tools")


def json_text(value: Any) -> str:
    """A value as JSON on one line. Raises `ValueError` for texts that no database and no tokenizer takes."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if "\\u0000" in text:
        raise ValueError("contains a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("contains a lone surrogate, which is not valid Unicode") from error
    if len(text) > LONGEST_TOOLS:
        raise ValueError(f"has more than {LONGEST_TOOLS:,} characters")
    return text


def parsed(value: Any) -> Any:
    """A value that may be JSON text. Raises `ValueError`."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _arguments(value: Any) -> str:
    given = parsed(value)
    if not isinstance(given, dict):
        raise ValueError("is not an object of arguments by name")
    return json_text(given)


def _tools(value: Any) -> str:
    given = parsed(value)
    if not isinstance(given, list) or not given:
        raise ValueError("is not a list of tools")
    return json_text([_tool(number, tool) for number, tool in enumerate(given, 1)])


def _tool(number: int, tool: Any) -> dict[str, Any]:
    """A tool in OpenAI's shape; many files have the function alone."""
    whole = {"type": "function", "function": tool} if isinstance(tool, dict) and "function" not in tool else tool
    function = whole.get("function") if isinstance(whole, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not function["name"].strip():
        raise ValueError(f"has a tool {number} without a name")
    return dict(whole)


Arguments = Annotated[str, BeforeValidator(_arguments, json_schema_input_type=str | dict[str, Any])]
Tools = Annotated[str, BeforeValidator(_tools, json_schema_input_type=str | list[dict[str, Any]])]


class FunctionCall(BaseModel):
    """`arguments`: a JSON object as text."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=200)]
    arguments: Arguments = "{}"


class ToolCall(BaseModel):
    """A call of a tool by an assistant."""

    model_config = ConfigDict(extra="forbid")

    id: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    type: Literal["function"] = "function"
    function: FunctionCall


def stored_turn(turn: Mapping[str, Any]) -> dict[str, Any]:
    """A turn as it is stored and hashed: its fields in their order, without absent ones."""
    fields = {"role": turn["role"], "content": turn["content"]}
    for name in TOOL_FIELDS:
        value = turn.get(name)
        if value is not None:
            fields[name] = [_stored_call(call) for call in value] if name == "tool_calls" else value
    return fields


def _stored_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = {name: call["function"][name] for name in ("name", "arguments")}
    number = {} if call.get("id") is None else {"id": call["id"]}
    return {**number, "type": "function", "function": function}


def calls_text(turn: Mapping[str, Any]) -> str:
    """The calls of a turn as text, one a line: `name {"argument": value}`. Empty without any.

    A row that is shown in part may have the beginning of a call only."""
    functions = [call.get("function", {}) for call in turn.get("tool_calls") or []]
    return "\n".join(f"{function.get('name', '')} {function.get('arguments', '')}" for function in functions)


def turn_text(turn: Mapping[str, Any]) -> str:
    """A turn for a reader who has texts only: its content, then its calls."""
    return "\n".join(part for part in (turn["content"], calls_text(turn)) if part)


def stored_answer(answer: Any) -> Any:
    """An answer as it is stored and hashed: a text, or a turn with calls as `stored_turn` keeps it."""
    return stored_turn(answer) if isinstance(answer, Mapping) else answer


def answer_text(answer: str | Mapping[str, Any]) -> str:
    """An answer for a reader who has texts only: its text, then its calls."""
    return answer if isinstance(answer, str) else turn_text(answer)


def answer_parts(answer: str | Mapping[str, Any]) -> tuple[str, str]:
    """What makes two answers the same one: their texts, without the space around them, and their calls as text."""
    if isinstance(answer, str):
        return answer.strip(), ""
    return answer["content"].strip(), calls_text(answer)


def has_tools(prompt: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a prompt has tools, calls of them, or results."""
    return any(turn["role"] == "tool" or any(name in turn for name in TOOL_FIELDS) for turn in prompt)


def check_texts_only(row: int, prompt: Sequence[Mapping[str, Any]], who: str) -> None:
    """Raises `BadInput` (`prompt_with_tools`) for a prompt that `who` would be asked without its tools."""
    if has_tools(prompt):
        raise BadInput(
            f"row {row} is a conversation with tools, and {who} are asked conversations of texts",
            code="prompt_with_tools",
            hint="Choose prompts without tools.",
        )


def template_turn(turn: Mapping[str, Any]) -> dict[str, Any]:
    """A stored turn as chat templates take it: with arguments, and tools, as objects."""
    message = dict(turn)
    if "tool_calls" in message:
        message["tool_calls"] = [
            {**call, "function": {**call["function"], "arguments": json.loads(call["function"]["arguments"])}}
            for call in message["tool_calls"]
        ]
    if "tools" in message:
        message["tools"] = json.loads(message["tools"])
    return message
