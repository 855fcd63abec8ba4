"""Labelled rows that have attributes and no reward, where a reward is needed."""

from __future__ import annotations

from collections.abc import Sequence

from steerboard_contracts.errors import BadInput

_NAMED = 5


def rows_without_reward(dataset: str, rows: Sequence[int]) -> BadInput:
    """Names the first of `rows` (by number)."""
    named = ", ".join(str(row) for row in rows[:_NAMED]) + (", ..." if len(rows) > _NAMED else "")
    noun, verb = ("row", "has") if len(rows) == 1 else ("rows", "have")
    return BadInput(
        f"{len(rows):,} {noun} of {dataset} {verb} attributes and no reward: {noun} {named}",
        code="rows_without_reward",
        hint="Score the dataset with a reward model first, or train a method by its attributes alone.",
    )
