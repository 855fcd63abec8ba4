"""How often a reward model is right about pairs: over all, by where they are from, and in RewardBench's sections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import repeat

from steerboard_contracts.report.benchmark import BenchmarkResult, RewardBenchSections
from steerboard_statistics.benchmarks import rewardbench
from steerboard_statistics.benchmarks.tally import MOST_SOURCES, BySource, shown
from steerboard_statistics.proportions import proportion_interval


def benchmark(pairs: Iterable[tuple[str | None, float, float]], hashes: Iterable[str] | None = None) -> BenchmarkResult:
    """The result of pairs (source, reward of chosen, reward of rejected), all rewards finite.

    A pair is won only if chosen > rejected; ties are lost, as in RewardBench. `hashes`: of the pairs, as from
    `item_hash`; without them no other model is compared on the same ones.
    """
    counted = BySource()
    items = repeat(None) if hashes is None else hashes
    for (source, chosen, rejected), item in zip(pairs, items, strict=hashes is not None):
        counted.add(source, chosen > rejected, chosen == rejected, item)
    every = counted.every
    return BenchmarkResult(
        pairs=every.n,
        ties=every.ties,
        accuracy=proportion_interval(every.won, every.n),
        sources=counted.rows(),
        more_sources=counted.more(),
        rewardbench=_sections(counted.shares()),
        items=counted.items(),
    )


def _sections(accuracies: Mapping[str, float]) -> RewardBenchSections | None:
    if not any(source in rewardbench.WEIGHTS for source in accuracies):
        return None
    result = rewardbench.sections(accuracies)
    return RewardBenchSections(
        sections=result.sections,
        overall=result.overall,
        incomplete=result.incomplete,
        unknown=[shown(name) for name in result.unknown[:MOST_SOURCES]],
    )
