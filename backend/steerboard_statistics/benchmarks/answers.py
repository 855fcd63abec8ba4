"""How often the best of a prompt's answers by a reward model is a right one, and RewardBench 2's domains."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from steerboard_contracts.report.benchmark import BenchmarkResult, RewardBench2Domains, TiesParts
from steerboard_statistics.benchmarks.rewardbench2 import DOMAINS, TIES, TieKind, best_of, overall, ties, twins_of
from steerboard_statistics.benchmarks.tally import BySource
from steerboard_statistics.proportions import proportion_interval


@dataclass(frozen=True, slots=True)
class Answered:
    """A prompt. `scores` of its answers, finite, those of the `right` ones first. `item` is its name, `hash` as from
    `item_hash`."""

    source: str | None
    item: str | None
    scores: Sequence[float]
    right: int
    hash: str | None = None


def benchmark_answers(prompts: Iterable[Answered], left_out: int) -> BenchmarkResult:
    """A prompt is won if a right answer has the highest score; where k answers share it, each counts 1/k.

    `left_out`: prompts of which no answer is wrong.
    """
    counted = BySource()
    chances: list[float] = []
    tied: list[tuple[TieKind, str, Sequence[float], int]] = []
    for prompt in prompts:
        highest = max(prompt.scores)
        twins = twins_of(prompt.item) if prompt.source == TIES and prompt.item is not None else None
        shared = sum(score == highest for score in prompt.scores) > 1
        won = best_of(prompt.scores, prompt.right)
        counted.add(prompt.source, won, shared, prompt.hash if twins is None else None)
        chances.append(prompt.right / len(prompt.scores))
        if twins is not None:
            tied.append((*twins, prompt.scores, prompt.right))
    every = counted.every
    return BenchmarkResult(
        pairs=0,
        prompts=every.n,
        ties=every.ties,
        accuracy=proportion_interval(every.won, every.n),
        chance=math.fsum(chances) / len(chances),
        left_out=left_out,
        sources=counted.rows(),
        more_sources=counted.more(),
        rewardbench2=_domains(counted.shares(), ties(tied)),
        items=counted.items(),
    )


def _domains(shares: Mapping[str, float], of_ties: TiesParts | None) -> RewardBench2Domains | None:
    """Returns None for data with fewer than two of the domains: other files have a source `Math`, too."""
    if len(shares.keys() & set(DOMAINS)) < 2:
        return None
    by_domain = {name: shares[name] for name in DOMAINS if name in shares and name != TIES}
    if of_ties is not None:
        by_domain[TIES] = of_ties.score
    return RewardBench2Domains(
        domains=by_domain,
        ties=of_ties,
        overall=overall(by_domain),
        missing=[name for name in DOMAINS if name not in by_domain],
    )
