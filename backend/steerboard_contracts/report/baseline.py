"""What the rows of a report are compared with by default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from steerboard_contracts.methods import baseline_methods

# How reports call a model that no method here has made.
BASE = "base"


class Compared(Protocol):
    @property
    def method(self) -> str | None: ...
    @property
    def best_of(self) -> int | None: ...


def is_usual_baseline(row: Compared) -> bool:
    return row.best_of is None and row.method in baseline_methods()


def baseline_place(rows: Sequence[Compared]) -> int | None:
    """The first of a method that others are compared with, else the first base model; the best of several answers is
    neither. None where there is no such row."""
    usual = [place for place, row in enumerate(rows) if is_usual_baseline(row)]
    bases = [place for place, row in enumerate(rows) if row.best_of is None and row.method in (None, BASE)]
    return next(iter([*usual, *bases]), None)
