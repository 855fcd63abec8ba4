"""Every two reward models on the same items of a benchmark: how far their accuracies differ, by subset and in all."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

from steerboard_figures.benchmark_files.reading import Figures
from steerboard_statistics.benchmarks.paired_models import paired_models
from steerboard_statistics.paired import holm

Item = tuple[str, Hashable]
"""The subset that it is in, and what it is."""
Sections = Mapping[str, Mapping[str, int]]
"""The subsets of each section, with their weights."""


def comparisons(
    right: Mapping[str, Mapping[Item, float]],
    usable: Callable[[str, str], bool],
    sections: Sections,
) -> Figures:
    """`right`: by model, how far it is right on each item, from 0 to 1; `usable`: whether a model has a valid figure of
    a subset. Empty for one model. `p_holm`: over the subsets of all comparisons, or the `all` and `overall` of these.
    """
    if len(right) < 2:
        return {}
    compared = [_comparison(a, b, right, usable, sections) for a, b in combinations(right, 2)]
    _adjust([row for comparison in compared for row in comparison["subsets"]])
    for name in ("all", "overall"):
        _adjust([comparison[name] for comparison in compared if comparison.get(name)])
    return {"comparisons": compared}


def _comparison(
    a: str,
    b: str,
    right: Mapping[str, Mapping[Item, float]],
    usable: Callable[[str, str], bool],
    sections: Sections,
) -> Figures:
    by_subset: dict[str, list[tuple[float, float]]] = {}
    for item, ours in right[a].items():
        subset, _ = item
        if item in right[b] and usable(a, subset) and usable(b, subset):
            by_subset.setdefault(subset, []).append((ours, right[b][item]))
    if not by_subset:
        return {"a": a, "b": b, "n": 0, "subsets": [], "why": f"{a} and {b} have no valid item in common"}
    compared = paired_models(by_subset, sections)
    comparison: Figures = {
        "a": a,
        "b": b,
        "n": compared.every.n,
        "subsets": [_row(subset, accuracy) for subset, accuracy in compared.subsets.items()],
        "all": _row("all", compared.every),
        "sections": [_row(name, accuracy) for name, accuracy in compared.sections.items()],
    }
    return comparison if compared.overall is None else {**comparison, "overall": _row("overall", compared.overall)}


def _row(name: str, accuracy: Any) -> Figures:
    return {"name": name, **asdict(accuracy)}


def _adjust(rows: Sequence[Figures]) -> None:
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p_holm"] = p
