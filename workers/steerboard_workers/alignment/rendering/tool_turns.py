"""Conversations with tools in a chat template: whether it writes the tools, the calls and their results at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from steerboard_contracts.errors import BadInput
from steerboard_workers.alignment.rendering.chat_template import ChatTemplate, Messages

_HINT = "Train a model whose chat template writes tools (`template: chat`), or leave the conversations with tools out."


class _Turn(Protocol):
    @property
    def role(self) -> str: ...
    @property
    def more(self) -> Mapping[str, Any]: ...


def check_no_tools(turns: Sequence[_Turn]) -> None:
    """Raises `BadInput` (`template_without_tools`): the plain template has no place for them."""
    if any(turn.role == "tool" or turn.more for turn in turns):
        raise _refused("the plain template writes no tools, no calls of them and no results")


def check_written(chat: ChatTemplate, messages: Messages) -> None:
    """Raises `BadInput` (`template_without_tools`) where the template leaves out tools, calls or results that the
    conversation has: learned so, calls would come from nowhere, or would not be learned.

    Written without such a part, the conversation has to be another text."""
    for what, without in _without(messages):
        if chat.write(messages, answering=False) == _written(chat, without):
            raise _refused(f"the model's chat template leaves out {what}")


def check_answer_written(chat: ChatTemplate, messages: Messages) -> None:
    """Raises `BadInput` (`template_without_tools`) where the template leaves out a call of the last turn, or the text
    before its calls: what the model would learn is another answer."""
    *before, answer = messages
    if "tool_calls" not in answer:
        return
    calls = answer["tool_calls"]
    without = [("the calls of an answer", {"role": answer["role"], "content": answer["content"]})]
    if len(calls) > 1:
        without.append(("a call of an answer with several", {**answer, "tool_calls": calls[:-1]}))
    if answer["content"]:
        without.append(("the text of an answer that calls tools", {**answer, "content": ""}))
    whole = chat.write(messages, answering=False)
    for what, other in without:
        if _written(chat, [*before, other]) == whole:
            raise _refused(f"the model's chat template leaves out {what}")


def mapped_texts(more: Mapping[str, Any], change: Callable[[str], str]) -> Mapping[str, Any]:
    """The fields of a turn with tools, with each of their texts changed."""
    return {name: _mapped(value, change) for name, value in more.items()} if more else more


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_mapped(each, change) for each in value]
    return {name: _mapped(each, change) for name, each in value.items()} if isinstance(value, dict) else value


def _without(messages: Messages) -> list[tuple[str, list[dict[str, Any]]]]:
    found = []
    if messages and "tools" in messages[0]:
        first = {name: value for name, value in messages[0].items() if name != "tools"}
        found.append(("the tools that the conversation offers", [first, *messages[1:]]))
    for at, message in enumerate(messages):
        if "tool_calls" in message:
            silent = {"role": message["role"], "content": message["content"]}
            found.append(("calls of tools", [*messages[:at], silent, *messages[at + 1 :]]))
            break
    for at, message in enumerate(messages):
        if message["role"] == "tool" and message["content"]:
            found.append(("results of tools", [*messages[:at], {**message, "content": ""}, *messages[at + 1 :]]))
            break
    return found


def _written(chat: ChatTemplate, messages: Messages) -> str | None:
    try:
        return chat.write(messages, answering=False)
    except BadInput:  # it cannot do without, so it does write them
        return None


def _refused(what: str) -> BadInput:
    return BadInput(what, code="template_without_tools", hint=_HINT)
