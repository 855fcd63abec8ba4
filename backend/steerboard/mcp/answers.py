"""Answers are small: texts are cut, lists are paged or shortened, and each shows what was left out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mcp_types import CallToolResult, TextContent

from steerboard.mcp.untrusted import Marks

# About 6,000 tokens.
MOST_CHARACTERS = 24_000
# Each is tried until an answer is small enough: items of a list, characters of a text.
_SIZES = ((60, 1200), (25, 500), (12, 250), (6, 120), (3, 60), (1, 40))
_MOST_DEPTH = 8


def packed(body: Mapping[str, Any]) -> str:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), default=str)


def answer(body: Mapping[str, Any], marks: Marks | None = None) -> CallToolResult:
    """The answer as text, and structured for programs. What is too large is shortened, visibly."""
    small = shortened({name: value for name, value in body.items() if value is not None}, MOST_CHARACTERS)
    if marks is not None and marks.used:
        small = {"data_note": marks.note, **small}
    return CallToolResult(content=[TextContent(text=packed(small))], structured_content=small)


def shortened(body: dict[str, Any], most: int) -> dict[str, Any]:
    """The body where it is at most that many characters of JSON; otherwise its longest lists and texts are cut."""
    plain: dict[str, Any] = json.loads(packed(body))
    small = plain
    for items, characters in _SIZES:
        if len(packed(small)) <= most:
            return small
        small = _cut(plain, items, characters, _MOST_DEPTH)
    return small if len(packed(small)) <= most else {"cut": f"an answer of {len(packed(plain)):,} characters"}


def _cut(value: Any, items: int, characters: int, depth: int) -> Any:
    if isinstance(value, str):
        return cut_text(value, characters)
    if isinstance(value, Mapping):
        if depth == 0:
            return f"({len(value)} fields)"
        shown = {name: _cut(part, items, characters, depth - 1) for name, part in list(value.items())[: 4 * items]}
        return shown | ({"cut": f"{len(value) - len(shown)} more fields"} if len(value) > len(shown) else {})
    if isinstance(value, list):
        if depth == 0:
            return f"({len(value)} items)"
        shown_items = [_cut(part, items, characters, depth - 1) for part in value[:items]]
        return [*shown_items, f"({len(value) - items} more)"] if len(value) > items else shown_items
    return value


def cut_text(text: str, characters: int) -> str:
    """The beginning; a mark that ends the text stays."""
    if len(text) <= characters + 40:
        return text
    end = text[text.rindex("</data-") :] if text.endswith(">") and "</data-" in text else ""
    return f"{text[:characters]} ... ({len(text) - characters - len(end):,} more characters){end}"


def picked(thing: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Fields that have a value, in the order of the names."""
    return {name: thing[name] for name in names if thing.get(name) not in (None, "", [], {})}
