"""How often a reward model is right about pairs: over all, by where they are from, and in RewardBench's sections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from steerboard_contracts.report.benchmark import BenchmarkResult, RewardBenchSections
from steerboard_statistics.benchmarks import rewardbench
from steerboard_statistics.benchmarks.tally import MOST_SOURCES, BySource, shown
from steerboard_statistics.proportions import proportion_interval


def benchmark(pairs: Iterable[tuple[str | None, float, float]]) -> BenchmarkResult:
    """The result of pairs (source, reward of chosen, reward of rejected), all rewards finite.

    A pair is won only if chosen > rejected; ties are lost, as in RewardBench.
    """
    counted = BySource()
    for source, chosen, rejected in pairs:
        counted.add(source, chosen > rejected, chosen == rejected)
    every = counted.every
    return BenchmarkResult(
        pairs=every.n,
        ties=every.ties,
        accuracy=proportion_interval(every.won, every.n),
        sources=counted.rows(),
        more_sources=counted.more(),
        rewardbench=_sections(counted.shares()),
    )


def _sections(accuracies: Mapping[str, float]) -> RewardBenchSections | None:
    if not any(source in rewardbench.WEIGHTS for source in accuracies):
        return None
    found = rewardbench.sections(accuracies)
    return RewardBenchSections(
        sections=found.sections,
        overall=found.overall,
        incomplete=found.incomplete,
        unknown=[shown(name) for name in found.unknown[:MOST_SOURCES]],
    )
