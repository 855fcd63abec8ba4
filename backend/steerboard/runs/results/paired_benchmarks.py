"""Two reward models on the same items of the benchmarks that both were run on."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import product

from sqlalchemy.orm import Session

from steerboard.datasets.tables import Dataset
from steerboard.registry.tables import Model
from steerboard.runs.errors import NotComparable
from steerboard.runs.results.benchmarks import newest_with_items
from steerboard_contracts.report.benchmark import (
    BenchmarkResult,
    BenchmarkSide,
    FinishedBenchmark,
    PairedBenchmark,
    PairedShare,
)
from steerboard_contracts.report.estimate import Estimate
from steerboard_statistics.benchmarks.paired_models import paired_models
from steerboard_statistics.benchmarks.rewardbench import SECTION_WEIGHTS
from steerboard_statistics.paired import holm
from steerboard_statistics.paired_accuracy import PairedAccuracy, WeightedAccuracy

_AGAIN = "Start a benchmark run of both models on one dataset."


def paired_benchmarks(session: Session, a: Model, b: Model, dataset: Dataset | None = None) -> list[PairedBenchmark]:
    """One comparison for each dataset that `a` was benchmarked on, or for this one, by the newest runs of both whose
    items are the same.

    Raises `NotComparable` where there is none: with the code `no_benchmark` where one was not benchmarked,
    `no_items_kept` for results of earlier versions, `other_benchmark_version` where only some items are the same, else
    `no_shared_items`.
    """
    ours, others = newest_with_items(session, a, dataset), newest_with_items(session, b)
    on = "" if dataset is None else f" on {dataset.name}"
    for model, finished, where in ((a, ours, on), (b, others, "")):
        if not finished:
            raise NotComparable(
                f"{model.name} has no finished benchmark{where}",
                code="no_benchmark",
                hint=f"Start a benchmark run of {model.name}.",
            )
    compared = [_paired(a, b, *both) for both in _same(ours, others)]
    if not compared:
        raise _not_comparable(a, b, ours, others)
    return compared


def _same(
    ours: Sequence[FinishedBenchmark], others: Sequence[FinishedBenchmark]
) -> Iterator[tuple[FinishedBenchmark, FinishedBenchmark]]:
    """Each of ours with the newest of the others that has the same items."""
    by_items: dict[str, FinishedBenchmark] = {}
    for other in others:
        if other.result.items is not None:
            by_items.setdefault(other.result.items.digest, other)
    for own in ours:
        if own.result.items is not None and own.result.items.digest in by_items:
            yield own, by_items[own.result.items.digest]


def _not_comparable(
    a: Model, b: Model, ours: Sequence[FinishedBenchmark], others: Sequence[FinishedBenchmark]
) -> NotComparable:
    for own, other in product(ours, others):
        if own.result.items is None or other.result.items is None:
            continue
        if shared := set(own.result.items.hashes) & set(other.result.items.hashes):
            return NotComparable(
                f"{own.dataset} of {a.name} and {other.dataset} of {b.name} are different versions of a benchmark: "
                f"{len(shared):,} items are the same, of {own.result.items.n:,} and {other.result.items.n:,}",
                code="other_benchmark_version",
                hint=_AGAIN,
            )
    if any(benchmark.result.items is None for benchmark in (*ours, *others)):
        return NotComparable(
            f"a benchmark of {a.name} or {b.name} is of an earlier version, which kept no results by item",
            code="no_items_kept",
            hint=_AGAIN,
        )
    return NotComparable(f"{a.name} and {b.name} were benchmarked on different items", hint=_AGAIN)


def _paired(a: Model, b: Model, ours: FinishedBenchmark, other: FinishedBenchmark) -> PairedBenchmark:
    right = _by_item(other.result)
    items: defaultdict[str | None, list[tuple[float, float]]] = defaultdict(list)
    for item, (source, correct) in _by_item(ours.result).items():
        items[source].append((correct, right[item][1]))
    largest_first = dict(sorted(items.items(), key=lambda subset: -len(subset[1])))
    compared = paired_models(largest_first, SECTION_WEIGHTS)
    subsets = [_share(name, subset) for name, subset in compared.subsets.items()] if items.keys() != {None} else []
    for row, p in zip(subsets, holm([row.p for row in subsets]), strict=True):
        row.p_holm = p
    assert ours.result.items is not None
    return PairedBenchmark(
        dataset=ours.dataset,
        dataset_id=ours.dataset_id,
        a=BenchmarkSide(model=a.name, run_id=ours.run_id),
        b=BenchmarkSide(model=b.name, run_id=other.run_id),
        items=ours.result.items.n,
        every=_share(None, compared.every),
        subsets=subsets,
        sections=[_share(name, section) for name, section in compared.sections.items()],
        overall=None if compared.overall is None else _share(None, compared.overall),
    )


def _by_item(result: BenchmarkResult) -> dict[str, tuple[str | None, float]]:
    """(source, how far it is right) by the item's hash."""
    assert result.items is not None
    kept = result.items
    return {
        item: (result.sources[place].source if place >= 0 else None, right)
        for item, place, right in zip(kept.hashes, kept.sources, kept.right, strict=True)
    }


def _share(name: str | None, compared: PairedAccuracy | WeightedAccuracy) -> PairedShare:
    counts = {"only_a": compared.only_a, "only_b": compared.only_b} if isinstance(compared, PairedAccuracy) else {}
    return PairedShare(
        name=name,
        n=compared.n,
        a=compared.a,
        b=compared.b,
        difference=Estimate(value=compared.difference, low=compared.low, high=compared.high, n=compared.n),
        p=compared.p,
        **counts,
    )
