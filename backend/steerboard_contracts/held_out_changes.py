"""Held-out rows that people changed in a version of a dataset, which figures measured on them report."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from pydantic import BaseModel

from steerboard_contracts.wording import listed


class HeldOutChange(BaseModel):
    """How many held-out rows a version of a dataset flipped, edited or dropped."""

    dataset: str
    dataset_id: uuid.UUID
    flipped: int
    dropped: int
    edited: int = 0


def merged(*given: Iterable[HeldOutChange]) -> list[HeldOutChange]:
    """Each version once, in the order given."""
    return list({change.dataset_id: change for changes in given for change in changes}.values())


def in_words(changes: Iterable[HeldOutChange]) -> str:
    """`3 flipped and 1 dropped in pairs-edited-1`, version by version."""
    return "; ".join(f"{_counts(change)} in {change.dataset}" for change in changes)


def _counts(change: HeldOutChange) -> str:
    counts = [(change.flipped, "flipped"), (change.edited, "edited"), (change.dropped, "dropped")]
    return listed(f"{number:,} {what}" for number, what in counts if number)
