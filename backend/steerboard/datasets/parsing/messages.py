"""Messages of a conversation, of any tool that writes them, as {role, content}.

A sample keeps the text of a turn and who wrote it. What else a message means to its model, such as a tool call or a
thought, is refused by name: dropped, it would make another conversation, and two different answers equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
_TOOL_ROLES = {"tool", "function", "observation", "function_call", "tool_call", "tool_response", "ipython"}
_TEXT_PARTS = {None, "text", "input_text", "output_text"}
_READ = {"role", "from", "content", "value"}
# What they mean, for the refusal.
_MEANINGFUL = {
    **dict.fromkeys(("tool_calls", "function_call", "tool_call_id", "tools", "functions"), "calls of tools"),
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
        turns.append({"role": role, "content": _joined(number, content) if isinstance(content, list) else content})
    return turns


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


def _refuse(number: int, role: Any, given: dict[str, Any]) -> None:
    if role in _TOOL_ROLES:
        raise UnreadableMessage(f"turn {number} has the role `{role}`: calls of tools are not kept in samples")
    for name, what in _MEANINGFUL.items():
        if name in given:
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
