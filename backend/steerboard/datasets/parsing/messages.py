"""Messages of a conversation, of any program that writes them, as {role, content} and what a turn with tools has.

A sample keeps the text of a turn, who wrote it, calls of tools and their results. What else a message means to its
model, such as a thought, is refused by name: dropped, it would make another conversation, and two different answers
equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from steerboard_contracts.tools import parsed

Turn = dict[str, Any]

_ROLES = {
    "human": "user",
    "prompter": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bot": "assistant",
    "model": "assistant",
    "developer": "system",
}
_RESULTS = {"tool", "function", "observation", "tool_response", "ipython"}
# ShareGPT: a turn whose text is the call.
_CALLS = {"function_call", "tool_call"}
_TEXT_PARTS = {None, "text", "input_text", "output_text"}
_TOOLS = ("tools", "functions")
_READ = {"role", "from", "content", "value", "tool_calls", "function_call", "tool_call_id", *_TOOLS}
# What they mean, for the refusal.
_MEANINGFUL = {
    **dict.fromkeys(("reasoning_content", "reasoning", "thinking", "reasoning_details"), "thoughts"),
    **dict.fromkeys(("images", "image", "videos", "video", "audio", "audios"), "pictures and sounds"),
    "name": "names of speakers",
    "refusal": "refusals",
    "prefix": "beginnings of answers",
}
# Whether a turn is learned: OpenAI, axolotl, ms-swift. Those that ask for what happens anyway are no loss.
_LEARNED = ("weight", "train", "training", "trainable", "loss")


class UnreadableMessage(ValueError):
    """A message has what a sample cannot hold. The text is the reason of its row."""


def message_turns(messages: list[Any]) -> list[Turn]:
    """Messages under one set of names. What is not a message is left for validation to name.

    Raises `UnreadableMessage`.
    """
    turns = []
    for number, message in enumerate(messages, 1):
        if not isinstance(message, dict):
            turns.append(message)
            continue
        # Arrow pads structs with nulls, and templates take what is empty for absent.
        given = {name: value for name, value in message.items() if value is not None and value not in ([], {}, "")}
        role = role_of(given)
        _refuse(number, role, given)
        content = given["content"] if "content" in given else message.get("value", message.get("content"))
        content = _joined(number, content) if isinstance(content, list) else content
        turn = {"role": role, "content": content, **_of_tools(number, role, given)}
        if role in _RESULTS:
            turn["role"] = "tool"
        elif role in _CALLS:
            turn |= {"role": "assistant", "content": "", "tool_calls": _calls(number, _parsed(number, role, content))}
        if turn["content"] is None and (turn["role"] == "tool" or "tool_calls" in turn):
            turn["content"] = ""
        turns.append(turn)
    return turns


def answer_of(turn: Turn) -> Any:
    """A turn as the answer of a sample: its text, or the turn where it calls tools."""
    if "tool_calls" not in turn:
        return turn["content"]
    return {name: turn[name] for name in ("role", "content", "tool_calls")}


def role_of(message: dict[str, Any]) -> Any:
    """Who wrote a message, by our names."""
    role = message.get("role", message.get("from"))
    return _ROLES.get(role, role) if isinstance(role, str) else role


def other_fields(messages: list[Any]) -> Iterator[str]:
    """Names of what messages have and no turn keeps."""
    for message in messages:
        for name, value in message.items() if isinstance(message, dict) else ():
            if value is not None and name not in _READ and name not in _MEANINGFUL and name not in _LEARNED:
                yield name


def _of_tools(number: int, role: Any, given: dict[str, Any]) -> Turn:
    """The fields of a turn that only conversations with tools have."""
    fields: Turn = {}
    calls = given.get("tool_calls", given.get("function_call"))
    if calls is not None:
        fields["tool_calls"] = _calls(number, _parsed(number, "tool_calls", calls))
    if role in _RESULTS:
        fields |= {name: given[name] for name in ("tool_call_id", "name") if name in given}
    elif "tool_call_id" in given:
        raise UnreadableMessage(f"turn {number} has `tool_call_id` as a {role} turn: only results of tools have one")
    tools = next((given[name] for name in _TOOLS if name in given), None)
    return fields if tools is None else {**fields, "tools": tools}


def _calls(number: int, given: Any) -> list[Any]:
    """Calls in OpenAI's shape: of a list or a single one, each with its function or being it."""
    calls = given if isinstance(given, list) else [given]
    shaped = []
    for call in calls:
        function = call.get("function", call) if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise UnreadableMessage(f"turn {number} has a call of a tool without a name")
        arguments = function.get("arguments", function.get("parameters"))
        fields = {"name": function["name"], "arguments": {} if arguments in (None, "") else arguments}
        call_id = call.get("id") if function is not call else None
        shaped.append({**({} if call_id in (None, "") else {"id": call_id}), "function": fields})
    return shaped


def _parsed(number: int, name: str, value: Any) -> Any:
    try:
        return parsed(value)
    except ValueError:
        raise UnreadableMessage(f"turn {number} has `{name}` that is not JSON: {str(value)[:40]}") from None


def _refuse(number: int, role: Any, given: dict[str, Any]) -> None:
    for name, what in _MEANINGFUL.items():
        if name in given and not (name == "name" and role in _RESULTS):
            raise UnreadableMessage(f"turn {number} has `{name}`: {what} are not kept in samples")
    for name in _LEARNED:
        if name in given and given[name] not in (1, True):
            raise UnreadableMessage(
                f"turn {number} has `{name}` = {str(given[name])[:20]}: a run decides which answers are learned "
                "(learn: last or all), and no turn can be left out"
            )


def _joined(number: int, parts: list[Any]) -> str:
    """Parts of type text as one text, as templates write them."""
    texts = []
    for part in parts:
        text = part if isinstance(part, str) else part.get("text") if isinstance(part, dict) else None
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in _TEXT_PARTS or not isinstance(text, str):
            what = f"of type `{kind}`" if isinstance(kind, str) and kind not in _TEXT_PARTS else "without a text"
            raise UnreadableMessage(f"turn {number} has a part {what}: only parts of type text are read")
        texts.append(text)
    return "".join(texts)
