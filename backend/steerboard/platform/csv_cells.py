"""Texts as cells of CSV files that people open in a spreadsheet."""

from __future__ import annotations

# A spreadsheet takes a cell that begins so for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def text_cell(text: str | None) -> str:
    """Text that no spreadsheet computes: with an apostrophe before what would begin a formula."""
    return f"'{text}" if text and text.startswith(_FORMULA) else text or ""
