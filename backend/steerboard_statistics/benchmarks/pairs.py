"""How often a reward model is right about pairs: over all, by where they are from, and in RewardBench's sections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from steerboard_contracts.report.benchmark import BenchmarkResult, RewardBenchSections, SourceAccuracy
from steerboard_statistics.benchmarks import rewardbench
from steerboard_statistics.proportions import proportion_interval

# Of a dataset whose sources are as many as its rows, and as long as they like.
MOST_SOURCES = 100
LONGEST_NAME = 200


class _Tally:
    """Counts of some pairs."""

    __slots__ = ("pairs", "ties", "won")

    def __init__(self) -> None:
        self.pairs = self.won = self.ties = 0

    def add(self, chosen: float, rejected: float) -> None:
        self.pairs += 1
        self.won += chosen > rejected
        self.ties += chosen == rejected


def benchmark(pairs: Iterable[tuple[str | None, float, float]]) -> BenchmarkResult:
    """The result of pairs (source, reward of chosen, reward of rejected), all rewards finite.

    A pair is won only if chosen > rejected; ties are lost, as in RewardBench.
    """
    every, by_source = _Tally(), dict[str | None, _Tally]()
    for source, chosen, rejected in pairs:
        every.add(chosen, rejected)
        by_source.setdefault(source, _Tally()).add(chosen, rejected)
    named = any(source is not None for source in by_source)
    ordered = sorted(by_source.items(), key=lambda one: (-one[1].pairs, one[0] is None, one[0] or "")) if named else []
    return BenchmarkResult(
        pairs=every.pairs,
        ties=every.ties,
        accuracy=proportion_interval(every.won, every.pairs),
        sources=[
            SourceAccuracy(
                source=None if source is None else _shown(source),
                accuracy=proportion_interval(of.won, of.pairs),
                ties=of.ties,
            )
            for source, of in ordered[:MOST_SOURCES]
        ],
        more_sources=max(0, len(ordered) - MOST_SOURCES),
        rewardbench=_sections({source: of.won / of.pairs for source, of in ordered if source is not None}),
    )


def _sections(accuracies: Mapping[str, float]) -> RewardBenchSections | None:
    if not any(source in rewardbench.WEIGHTS for source in accuracies):
        return None
    found = rewardbench.sections(accuracies)
    return RewardBenchSections(
        sections=found.sections,
        overall=found.overall,
        incomplete=found.incomplete,
        unknown=[_shown(name) for name in found.unknown[:MOST_SOURCES]],
    )


def _shown(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"
