"""The places of an assistant's answers in a conversation, by construction: a turn's text is never searched for, since a
header, a date or a system prompt may hold the same characters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from steerboard_contracts.errors import BadInput
from steerboard_workers.alignment.rendering.chat_template import ChatTemplate, Messages, Span

# Put around answers while the template is applied once more. Private use, and no placeholder of `control_tokens`.
_START, _END = "\ue0f6", "\ue0f7"


@dataclass(frozen=True)
class ReplyShape:
    """What a template writes around an answer. `lead` comes between the generation prompt and the text, once `dropped`
    is taken from the end of that prompt, which closed conversations do not have (an opened `<think>`); `after` follows
    the text, and its first `end` characters hold the end token."""

    dropped: str
    lead: str
    after: str
    end: int

    @property
    def ending(self) -> str:
        return self.after[: self.end]


def earlier_replies(chat: ChatTemplate, shape: ReplyShape, messages: Messages, whole: str) -> list[Span]:
    """(start, end) of each answer but the last in `whole`, the closed conversation as text; with its end token.

    By the template's own marks where it has them, else from the text of the conversation up to each answer, else by
    marks of ours around the answers, if they change nothing else. Raises `BadInput` (`inexact_template`).
    """
    places = [place for place, message in enumerate(messages[:-1]) if message["role"] == "assistant"]
    if not places:
        return []
    spans = _marked(chat, shape, messages, whole, len(places)) if chat.has_marks else None
    spans = spans or _incremental(chat, shape, messages, whole, places)
    spans = spans or _enclosed(chat, shape, messages, whole, places)
    if spans is None:
        raise inexact(
            "the exact place of earlier answers cannot be found", "Or learn the last answer only (learn: last)."
        )
    return spans


def _marked(chat: ChatTemplate, shape: ReplyShape, messages: Messages, whole: str, count: int) -> list[Span] | None:
    marks = chat.marks(messages)
    if len(marks) != count + 1:
        return None
    spans = []
    for start, end in marks[:-1]:
        if shape.ending and whole.startswith(shape.ending, end):
            end += len(shape.ending)
        spans.append((start, end))
    ended = all(whole[start:end].endswith(shape.ending) for start, end in spans)
    return spans if ended else None


def _incremental(
    chat: ChatTemplate, shape: ReplyShape, messages: Messages, whole: str, places: Sequence[int]
) -> list[Span] | None:
    spans = []
    for place in places:
        try:
            opened = chat.write(messages[:place], answering=True).removesuffix(shape.dropped)
            closed = chat.write(messages[: place + 1], answering=False)
        except BadInput:  # such as of a conversation that begins with an answer
            return None
        end = len(closed) - len(shape.after) + shape.end
        if not closed.endswith(shape.after) or not closed.startswith(opened) or not whole.startswith(closed[:end]):
            return None
        spans.append((len(opened), end))
    return spans


def _enclosed(
    chat: ChatTemplate, shape: ReplyShape, messages: Messages, whole: str, places: Sequence[int]
) -> list[Span] | None:
    for strips_left in (False, True):
        for strips_right in (False, True):
            given = [
                {**message, "content": _enclose(message["content"], strips_left, strips_right)}
                if place in places
                else message
                for place, message in enumerate(messages)
            ]
            spans = _spans(chat.write(given, answering=False), whole, shape)
            if spans is not None and len(spans) == len(places):
                return spans
    return None


def _enclose(content: Any, strips_left: bool, strips_right: bool) -> str:
    """Marks inside of the whitespace that a template strips, which it would not beyond them."""
    content = content.lstrip() if strips_left else content
    content = content.rstrip() if strips_right else content
    return f"{_START}{content}{_END}"


def _spans(marked: str, whole: str, shape: ReplyShape) -> list[Span] | None:
    pieces = re.split(f"([{_START}{_END}])", marked)
    if "".join(pieces[::2]) != whole or pieces[1::2] != [_START, _END] * (len(pieces) // 4):
        return None
    spans, at = [], 0
    for before, text in zip(pieces[0::4], pieces[2::4], strict=False):
        start = at + len(before)
        at = start + len(text)
        if not whole.startswith(shape.ending, at):
            return None
        lead = len(shape.lead) if before.endswith(shape.lead) else 0
        spans.append((start - lead, at + shape.end))
    return spans


def inexact(what: str, hint: str = "") -> BadInput:
    return BadInput(
        f"the model's chat template cannot be learned from exactly: {what}",
        code="inexact_template",
        hint=f"Correct the template in the model's tokenizer, or use `template: plain`. {hint}".rstrip(),
    )
