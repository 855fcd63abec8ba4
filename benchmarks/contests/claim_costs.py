"""What the methods of `make bench-claim` cost, and the three ratios, from the ledgers of their runs.

Seconds are device-seconds of attempts that succeeded, without the phase `evaluate`: a run's looks at held-out prompts
are for its curve, and no part of the method. Arithmetic is in operations a parameter: 2 for a token that a model reads
or samples, 6 for one that it learns from, so that with models of one size DT at one epoch is 8 + g/3 for each token of
a sample and PPO 20 + g, where g, the sampling of a token, is 2. Reading a prompt before its answer is sampled is in no
phase's tokens, and not counted.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steerboard_contracts.watching.ledger import Ledger, Phase, add_up

READ, LEARN = 2.0, 6.0
_READING: tuple[Phase, ...] = ("generate", "score", "reference", "value")
# The reward model, and the judge that rides along with weight 0: of one size, and both read every answer.
REWARD_MODELS = 2


@dataclass(frozen=True)
class Cost:
    """`seconds`: device-seconds. `arithmetic`: operations a parameter."""

    seconds: float
    arithmetic: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.seconds + other.seconds, self.arithmetic + other.arithmetic)

    def times(self, factor: float) -> Cost:
        return Cost(self.seconds * factor, self.arithmetic * factor)


@dataclass(frozen=True)
class Point:
    """An online run after `step` optimiser steps, for which `samples` answers were sampled. `judge`, `reward`: means of
    greedy answers to the held-out prompts, None at steps without a look. `kl`: of the last sampling, in nats."""

    step: int
    samples: int
    cost: Cost
    judge: float | None
    reward: float | None
    kl: float | None


@dataclass(frozen=True)
class Ratios:
    """DT's cost over another method's: below 1, DT is cheaper. None where there is no such cost."""

    occupied: float | None
    arithmetic: float | None
    to_equal_score: float | None


@dataclass(frozen=True)
class Spread:
    """The spread over the seeds that have a figure, `seeds` of `of`."""

    median: float
    low: float
    high: float
    seeds: int
    of: int


def cost_of(ledgers: Iterable[Ledger], learners: int = 1) -> Cost:
    """All of the runs together; `learners`: how many models learn in an update."""
    total = add_up(ledgers)
    taken = {phase.phase: phase for phase in total.phases}
    looks = taken["evaluate"].device_seconds if "evaluate" in taken else 0.0
    tokens = {name: phase.tokens for name, phase in taken.items()}
    return Cost(total.device_seconds - looks, _arithmetic(tokens, learners))


def at_one_epoch(ledgers: Sequence[Ledger], epochs: float) -> float:
    """The arithmetic of runs whose updates were `epochs` passes over their samples, had they been one."""
    learned = sum(phase.tokens for ledger in ledgers for phase in ledger.phases if phase.phase == "update")
    return cost_of(ledgers).arithmetic - LEARN * learned * (1 - 1 / epochs)


def curve(ledger: Ledger, steps: Sequence[Mapping[str, float]], answers: int, learners: int = 1) -> list[Point]:
    """Each step of an online run. steps: the metrics of each, in order; answers: how many a sampling has.

    A step's seconds are its tokens over its rate, less the judge's half of the scoring. What no step took, such as the
    start of the process and the writing of the model, is in every point, as a shorter run would have it, too.
    """
    spent = [step["tokens"] / step["tokens_per_second"] for step in steps]
    cost = Cost(max(0.0, cost_of([ledger]).seconds - sum(spent)), 0.0)
    points: list[Point] = []
    samplings = 0
    for number, (values, seconds) in enumerate(zip(steps, spent, strict=True), start=1):
        samplings += "generate_tokens" in values
        tokens = {name: values.get(f"{name}_tokens", 0.0) for name in _READING} | {"update": values["tokens"]}
        scoring = values.get("score_seconds", 0.0)
        cost += Cost(seconds - scoring * (1 - 1 / REWARD_MODELS), _arithmetic(tokens, learners))
        kl = values.get("kl", points[-1].kl if points else None)
        looked = values.get("eval_reward_model_2"), values.get("eval_reward_model")
        points.append(Point(number, samplings * answers, cost, *looked, kl))
    return points


def at_samples(points: Sequence[Point], samples: int) -> Cost | None:
    """The cost of learning from so many answers; None for a run that ended before."""
    if not points or points[-1].samples < samples:
        return None
    return [point for point in points if point.samples <= samples][-1].cost


def until(points: Sequence[Point], target: float) -> Cost | None:
    """The cost until the first look at which the judge's score is at least `target`; None if there is none."""
    return next((point.cost for point in points if point.judge is not None and point.judge >= target), None)


def best_of_n(answering: Ledger, answers: int, samples: int) -> Cost:
    """The cost of sampling and scoring `samples` answers, by a run that did so for `answers`; its start counts once."""
    taken = add_up([answering])
    work = [phase for phase in taken.phases if phase.phase in _READING]
    once = taken.device_seconds - sum(phase.device_seconds for phase in work)
    tokens = {phase.phase: phase.tokens for phase in work}
    grown = Cost(sum(phase.device_seconds for phase in work), _arithmetic(tokens, 1)).times(samples / answers)
    return grown + Cost(once, 0.0)


def ratios(dt: Cost, equal: Cost | None, reached: Cost | None) -> Ratios:
    """dt: of making and scoring its samples, and of learning from them. equal: of the other method at as many samples;
    reached: until the score that DT ends with."""
    return Ratios(
        occupied=None if equal is None else dt.seconds / equal.seconds,
        arithmetic=None if equal is None else dt.arithmetic / equal.arithmetic,
        to_equal_score=None if reached is None else dt.seconds / reached.seconds,
    )


def spread(values: Sequence[float | None]) -> Spread | None:
    """One value a seed. None where no seed has one."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return Spread(statistics.median(known), min(known), max(known), len(known), len(values))


def _arithmetic(tokens: Mapping[Any, float], learners: int) -> float:
    return READ * sum(tokens.get(name, 0) for name in _READING) + LEARN * learners * tokens.get("update", 0)
