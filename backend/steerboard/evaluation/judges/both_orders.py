"""Verdicts on two answers, asked in one order or in both, become one. Pure; `report.verdict_tables` does the same to
whole tables."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

PAIR_STYLES = ("pairwise", "alpaca_eval", "arena_hard", "preference")


@dataclass(frozen=True)
class OrderedVerdict:
    """One verdict on answers a and b. `value`: the share of a's win, None where it has none; `turned`: b was shown
    first."""

    value: float | None
    turned: bool
    weight: int = 1


@dataclass(frozen=True)
class PairValue:
    """`value`: the share of a's win. `half`: it comes from one of two orders that were asked, the other one being
    unusable, and so has the bias of its position."""

    value: float
    half: bool


def together(verdicts: Iterable[OrderedVerdict], style: str) -> PairValue | None:
    """One value of both orders: of style `pairwise` a tie where they differ, else their mean, weights counting. None
    where no verdict has a value."""
    orders: set[bool] = set()
    sums: dict[bool, tuple[float, int]] = {}
    for verdict in verdicts:
        orders.add(verdict.turned)
        if verdict.value is not None:
            total, weight = sums.get(verdict.turned, (0.0, 0))
            sums[verdict.turned] = total + verdict.value * verdict.weight, weight + verdict.weight
    if not sums:
        return None
    sides = {_side(total / weight) for total, weight in sums.values()}
    if style == "pairwise" and len(sides) > 1:
        return PairValue(0.5, half=False)
    value = sum(total for total, _ in sums.values()) / sum(weight for _, weight in sums.values())
    return PairValue(value, half=len(orders) > len(sums))


def _side(value: float) -> int:
    return (value > 0.5) - (value < 0.5)
