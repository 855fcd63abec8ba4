"""Two reward models on the same items of a benchmark: by subset, by section, over all items, and as it weighs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from steerboard_statistics.paired_accuracy import PairedAccuracy, WeightedAccuracy, paired_accuracy, weighted_accuracy

Subset = TypeVar("Subset", str, str | None)


@dataclass(frozen=True, slots=True)
class PairedModels(Generic[Subset]):
    """`every`: all items alike. `sections`: those of which no subset is missing. `overall`: the mean of the sections,
    None while one is missing."""

    every: PairedAccuracy
    subsets: dict[Subset, PairedAccuracy]
    sections: dict[str, WeightedAccuracy]
    overall: WeightedAccuracy | None


def paired_models(
    items: Mapping[Subset, Sequence[tuple[float, float]]], sections: Mapping[str, Mapping[str, int]]
) -> PairedModels[Subset]:
    """items: by subset, how far each of the two is right on each item, from 0 to 1. sections: the subsets of each, with
    their weights. Raises `ValueError` without items."""
    subsets = {subset: _paired(rows) for subset, rows in items.items()}
    whole = {name: weights for name, weights in sections.items() if weights.keys() <= subsets.keys()}
    # Each section weighs the same, whatever the number of its items.
    shares = [(weights, 1 / sum(weights.values())) for weights in whole.values()]
    complete = bool(sections) and len(whole) == len(sections)
    return PairedModels(
        every=_paired([row for rows in items.values() for row in rows]),
        subsets=subsets,
        sections={name: _weighted(subsets, [(weights, 1.0)]) for name, weights in whole.items()},
        overall=_weighted(subsets, shares) if complete else None,
    )


def _paired(rows: Sequence[tuple[float, float]]) -> PairedAccuracy:
    return paired_accuracy([a for a, _ in rows], [b for _, b in rows])


def _weighted(
    subsets: Mapping[Subset, PairedAccuracy], parts: Sequence[tuple[Mapping[str, int], float]]
) -> WeightedAccuracy:
    """parts: the weights of some subsets, and a factor for all of them."""
    return weighted_accuracy(
        [(factor * weight, subsets[subset]) for weights, factor in parts for subset, weight in weights.items()]
    )
