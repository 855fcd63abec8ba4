"""How much work a run is, in a unit of its kind's own, so that the cost of earlier runs can be scaled by it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RowCounts:
    """The row counts of a dataset that a run takes in."""

    rows: int = 0
    held_out: int = 0
    kept: int | None = None
    """The number of training rows that are left to learn from, where a selection or an earlier run determines it."""

    @property
    def train(self) -> int:
        return self.rows - self.held_out

    def of_split(self, split: str) -> int:
        """`train`, `held_out` or `all`."""
        return {"train": self.train, "held_out": self.held_out}.get(split, self.rows)


Work = Callable[[Any, Mapping[str, RowCounts]], float]
"""The work of a run with this config, by the datasets that it takes in: 0 where it is not known."""


def always_the_same(config: Any, data: Mapping[str, RowCounts]) -> float:
    """What the work depends on is not known of the kind: earlier runs count as they are."""
    return 1.0


def unknown(config: Any, data: Mapping[str, RowCounts]) -> float:
    return 0.0


def rows_of(slot: str, times: float = 1.0) -> Work:
    """All rows of an input, each `times` times."""

    def work(config: Any, data: Mapping[str, RowCounts]) -> float:
        return times * data.get(slot, RowCounts()).rows

    return work
