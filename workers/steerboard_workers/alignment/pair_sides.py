"""Which preference pairs something can be learned of: one rule for every method that learns from pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal

from steerboard_contracts.tools import answer_parts
from steerboard_workers.alignment.training_method import Row

Fault = Literal["empty_pairs", "equal_pairs"]


def fault_of(row: Row) -> Fault | None:
    """Why a pair teaches nothing: a side is empty, or both are equal, without regard to the space around them."""
    chosen, rejected = answer_parts(row["chosen"]), answer_parts(row["rejected"])
    if not (any(chosen) and any(rejected)):
        return "empty_pairs"
    return "equal_pairs" if chosen == rejected else None


def learnable_pairs(rows: list[Row]) -> tuple[list[Row], Counter[str]]:
    """The pairs without a fault, and how many have which fault; `tied_pairs` have margin 0 and are learned."""
    faults = [fault_of(row) for row in rows]
    kept = [row for row, fault in zip(rows, faults, strict=True) if fault is None]
    counts = Counter({name: faults.count(name) for name in ("empty_pairs", "equal_pairs")})
    counts["tied_pairs"] = sum(row.get("margin") == 0 for row in kept)
    return kept, counts


def left_out(counts: Mapping[str, int]) -> list[str]:
    """A note on them for the run's log, where there are any."""
    empty, equal, tied = (counts[name] for name in ("empty_pairs", "equal_pairs", "tied_pairs"))
    if not (empty or equal or tied):
        return []
    return [f"left out: {empty} pairs with an empty side, {equal} with equal ones; {tied} have margin 0"]
