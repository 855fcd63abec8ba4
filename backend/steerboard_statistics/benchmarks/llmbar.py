"""LLMBar: how often an evaluator picks the right one of two outputs, in both orders (Zeng et al., arXiv 2310.07641)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from steerboard_statistics.agreement import cohen_kappa

Choice = int | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """Counts of n instances. `unparsed`: verdicts, of 2n, that name neither output; they are wrong, but two of them on
    an instance are equal, as published. `kappa_*`: Cohen's, with what was not parsed as a class of its own."""

    n: int
    correct_12: int
    correct_21: int
    correct_both: int
    equal: int
    unparsed: int
    kappa_12: float | None
    kappa_21: float | None
    kappa_between: float | None

    @property
    def correct_average(self) -> float:
        """A share from 0 to 1."""
        return (self.correct_12 + self.correct_21) / 2 / self.n


@dataclass(frozen=True, slots=True)
class PublishedKappas:
    """The kappas of LLMBar's statistics.json."""

    order_12: float | None
    order_21: float | None
    average: float | None
    between: float | None


Row = tuple[int, Choice, Choice]
"""(label, winner in the order 1 2, winner in the order 2 1): 1 or 2, always by the output, not by its place."""


def agreement(rows: Sequence[Row]) -> Agreement:
    """The agreement over at least one row. Raises `ValueError` without rows."""
    if not rows:
        raise ValueError("there are no rows")
    labels, first, second = (list(column) for column in zip(*rows, strict=True))
    return Agreement(
        n=len(rows),
        correct_12=sum(first == label for label, first, _ in rows),
        correct_21=sum(second == label for label, _, second in rows),
        correct_both=sum(first == label == second for label, first, second in rows),
        equal=sum(first == second for _, first, second in rows),
        unparsed=first.count(None) + second.count(None),
        kappa_12=_kappa(first, labels),
        kappa_21=_kappa(second, labels),
        kappa_between=_kappa(first, second),
    )


def published_kappas(rows: Sequence[Row]) -> PublishedKappas:
    """LLMBar's own figures, to compare with. Its script takes every verdict but `1` for a 0, and holds that against
    labels of 1 and 2, so its kappas against the labels are too low; `Agreement` has the right ones."""
    labels = [label for label, _, _ in rows]
    first, second = ([int(row[column] == 1) for row in rows] for column in (1, 2))
    first_kappa, second_kappa = _kappa(first, labels), _kappa(second, labels)
    average = None if first_kappa is None or second_kappa is None else (first_kappa + second_kappa) / 2
    return PublishedKappas(first_kappa, second_kappa, average, _kappa(first, second))


def _kappa(first: Sequence[Choice], second: Sequence[Choice]) -> float | None:
    return cohen_kappa(*([0 if label is None else label for label in labels] for labels in (first, second)))
