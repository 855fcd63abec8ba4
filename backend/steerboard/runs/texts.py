"""Texts that runs keep and show."""

from __future__ import annotations


def all_held_out(rows: int) -> str:
    """`24 rows, all of them held out`."""
    return "one row, which is held out" if rows == 1 else f"{rows:,} rows, all of them held out"
