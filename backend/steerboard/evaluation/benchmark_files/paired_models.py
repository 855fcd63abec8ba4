"""Every two reward models on the same items of a benchmark: how far their accuracies differ, by subset and in all."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

from steerboard.evaluation.benchmark_files.reading import Found
from steerboard_statistics.paired import holm
from steerboard_statistics.paired_accuracy import PairedAccuracy, paired_accuracy, weighted_accuracy

Item = tuple[str, Hashable]
"""The subset that it is in, and what it is."""
Sections = Mapping[str, Mapping[str, int]]
"""The subsets of each section, with their weights."""


def comparisons(
    right: Mapping[str, Mapping[Item, float]],
    usable: Callable[[str, str], bool],
    sections: Sections,
) -> Found:
    """`right`: by model, how far it is right on each item, from 0 to 1; `usable`: whether a model has a valid figure of
    a subset. Empty for one model. `p_holm`: over the subsets of all comparisons, or the `all` and `overall` of these.
    """
    if len(right) < 2:
        return {}
    made = [_comparison(a, b, right, usable, sections) for a, b in combinations(right, 2)]
    _adjust([row for one in made for row in one["subsets"]])
    for name in ("all", "overall"):
        _adjust([one[name] for one in made if one.get(name)])
    return {"comparisons": made}


def _comparison(
    a: str,
    b: str,
    right: Mapping[str, Mapping[Item, float]],
    usable: Callable[[str, str], bool],
    sections: Sections,
) -> Found:
    by_subset: dict[str, list[tuple[float, float]]] = {}
    for item, ours in right[a].items():
        subset, _ = item
        if item in right[b] and usable(a, subset) and usable(b, subset):
            by_subset.setdefault(subset, []).append((ours, right[b][item]))
    if not by_subset:
        return {"a": a, "b": b, "n": 0, "subsets": [], "why": f"{a} and {b} have no valid item in common"}
    parts = {subset: _paired(items) for subset, items in by_subset.items()}
    found: Found = {
        "a": a,
        "b": b,
        "n": sum(one.n for one in parts.values()),
        "subsets": [_row(subset, one) for subset, one in parts.items()],
        "all": _row("all", _paired([one for items in by_subset.values() for one in items])),
    }
    whole = {name: weights for name, weights in sections.items() if weights.keys() <= parts.keys()}
    found["sections"] = [
        _row(name, weighted_accuracy([(weight, parts[subset]) for subset, weight in weights.items()]))
        for name, weights in whole.items()
    ]
    if sections and len(whole) == len(sections):
        # Each section weighs the same, whatever the number of its items.
        shares = [
            (weight / sum(weights.values()), parts[subset])
            for weights in whole.values()
            for subset, weight in weights.items()
        ]
        found["overall"] = _row("overall", weighted_accuracy(shares))
    return found


def _paired(items: Sequence[tuple[float, float]]) -> PairedAccuracy:
    return paired_accuracy([ours for ours, _ in items], [theirs for _, theirs in items])


def _row(name: str, found: Any) -> Found:
    return {"name": name, **asdict(found)}


def _adjust(rows: Sequence[Found]) -> None:
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p_holm"] = p
