"""The cost ledger: which phases the device time of runs went into, and how many tokens each of them processed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from pydantic import BaseModel

# `load`: models are opened, data tokenised, and the memory of a step is checked. `data`: rows are mixed, selected,
# combined or written, without a model. `sync`: new weights go to where answers are sampled. `checkpoint`: checkpoints
# and the finished model are written. `idle`: what is left of the time that devices are held, such as the start of the
# process. `unrecorded`: attempts of releases that did not tell phases apart.
Phase = Literal[
    "load",
    "data",
    "generate",
    "score",
    "reference",
    "value",
    "update",
    "sync",
    "evaluate",
    "checkpoint",
    "idle",
    "unrecorded",
]
PHASES: tuple[Phase, ...] = get_args(Phase)


class PhaseTime(BaseModel):
    """The time of one phase of an attempt: wall seconds of its process, and the tokens that it processed, those of all
    processes."""

    seconds: float = 0.0
    tokens: int = 0


class PhaseCost(BaseModel):
    """`device_seconds`: devices times wall seconds. `tokens`: those that were sampled in `generate`, those that a model
    read in other phases."""

    phase: Phase
    device_seconds: float
    tokens: int = 0


class Ledger(BaseModel):
    """What one or several runs cost, each of them counted once. `phases` add up to `device_seconds`, those of attempts
    that succeeded or are at work; attempts that failed, were stopped or cancelled are apart.

    `reused`: names of the runs whose outputs were taken from an equal earlier run; `reused_device_seconds`, which are
    part of `device_seconds`, are what that one cost when it ran.
    """

    phases: list[PhaseCost] = []
    device_seconds: float = 0.0
    failed_device_seconds: float = 0.0
    failed_attempts: int = 0
    reused: list[str] = []
    reused_device_seconds: float = 0.0


def add_up(ledgers: Iterable[Ledger]) -> Ledger:
    """Their sum. Give each run's once."""
    total = Ledger()
    of_phase: dict[Phase, PhaseCost] = {}
    for ledger in ledgers:
        for cost in ledger.phases:
            sum_ = of_phase.setdefault(cost.phase, PhaseCost(phase=cost.phase, device_seconds=0.0))
            sum_.device_seconds += cost.device_seconds
            sum_.tokens += cost.tokens
        total.device_seconds += ledger.device_seconds
        total.failed_device_seconds += ledger.failed_device_seconds
        total.failed_attempts += ledger.failed_attempts
        total.reused += ledger.reused
        total.reused_device_seconds += ledger.reused_device_seconds
    total.phases = in_order(of_phase.values())
    return total


def in_order(costs: Iterable[PhaseCost]) -> list[PhaseCost]:
    """The phases in the order in which pages show them, without phases that took nothing."""
    return sorted(
        (cost for cost in costs if cost.device_seconds or cost.tokens), key=lambda cost: PHASES.index(cost.phase)
    )
