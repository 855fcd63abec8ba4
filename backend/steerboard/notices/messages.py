"""A notice as people read it in Slack and in e-mail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_LONGEST_REASON = 500
_STATES = {
    "cancelled": "was cancelled",
    "done": "is done",
    "health": "breaks a health rule",
    "paused": "is paused",
}


@dataclass(frozen=True)
class Message:
    """`title` is one line."""

    title: str
    reason: str
    url: str


def message_of(payload: dict[str, Any]) -> Message:
    """The message for a delivery's payload."""
    what, _, state = payload["type"].partition(".")
    data = payload["data"]
    if what == "test":
        return Message(f"Test of the notice rule {data['name']}", data["reason"], data["url"])
    if what == "comment":
        names = ", ".join(f"@{name}" for name in data["mentioned"])
        title = f"{_line(data['author'])} mentions {names} on {_line(data['name'])}"
        return Message(title, _line(data["reason"])[:_LONGEST_REASON], data["url"])
    pipeline = data.get("pipeline")
    name = f"{pipeline['name']}.{data['name']}" if pipeline else data["name"]
    title = f"{what.capitalize()} {_line(name)} {_STATES.get(state, state)}"
    reason = (data.get("finding") or {}).get("reason") or data.get("reason") or ""
    return Message(title, _line(reason)[:_LONGEST_REASON], data["url"])


def subject(payloads: Sequence[dict[str, Any]], project: str) -> str:
    """One line for all of them."""
    if len(payloads) == 1:
        return f"[{project}] {message_of(payloads[0]).title}"
    failed = sum(payload["type"].endswith((".failed", ".health")) for payload in payloads)
    return f"[{project}] {len(payloads)} notices" + (f", {failed} of failures" if failed else "")


def plain(payloads: Sequence[dict[str, Any]]) -> str:
    """The text of an e-mail."""
    notes = map(message_of, payloads)
    return "\n".join("\n".join(filter(None, (note.title, note.reason, note.url, ""))) for note in notes)


def slack(payloads: Sequence[dict[str, Any]]) -> str:
    """Slack's markup, one paragraph a notice."""
    return "\n".join(
        f"*<{_escaped(note.url)}|{_escaped(note.title)}>*" + (f"\n{_escaped(note.reason)}" if note.reason else "")
        for note in map(message_of, payloads)
    )


def _line(text: str) -> str:
    """The text on one line: a header must not contain another."""
    return " ".join(text.split())


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "¦")
