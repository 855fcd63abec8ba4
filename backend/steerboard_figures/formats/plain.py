"""Your own prompts: JSON lines with a text or a list of messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steerboard_figures.formats.records import Question, Unreadable, identifier, optional_text, text, texts, user

_ROLES = ("system", "user", "assistant")


def question(row: Mapping[str, Any]) -> Question:
    """{prompt: text or [{role, content}], question_id?, category?, follow_ups?: [text], reference?: text or [text]}."""
    given = row.get("messages", row.get("prompt"))
    messages = [user(text(row, "prompt"))] if not isinstance(given, list) else [_message(message) for message in given]
    if not messages or messages[-1]["role"] != "user":
        raise Unreadable("does not end with a turn of the user")
    follow_ups, reference = row.get("follow_ups"), row.get("reference")
    if isinstance(reference, str):
        reference = [reference]
    return Question(
        identifier(row, "question_id", "id"),
        optional_text(row, "category"),
        messages,
        texts(follow_ups, "follow_ups") if follow_ups else [],
        texts(reference, "reference") if reference else None,
    )


def _message(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or value.get("role") not in _ROLES:
        raise Unreadable(f"has a message that is not an object with one of the roles {', '.join(_ROLES)}")
    return {"role": value["role"], "content": text(value, "content")}
