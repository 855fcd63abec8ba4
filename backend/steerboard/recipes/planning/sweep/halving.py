"""Successive halving of a sweep's variants: Algorithm 1 of arXiv 1502.07943, by a held-out figure of training.

    sweep:
      halving: {figure: tuned.held_out_accuracy, goal: maximize, factor: 2, rungs: [50, 100, 200]}

Every variant of `tuned` trains for the first rung's steps, as `tuned-1-rung1`, `tuned-2-rung1`, .... A rung waits until
all of the rung before have ended, and trains the best 1 / factor of them, from the start, since a learning-rate
schedule of fewer steps is another one. A `tuned` that several variants share counts once: one that does not start
from what they vary elsewhere. The last rung is `tuned-1`, ... itself, which the other stages read.
`runs.state.dropped_variants` has what happens to those that are dropped.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

from steerboard.recipes.inputs import StageRef
from steerboard.recipes.recipe import Stage
from steerboard.recipes.sources import Source
from steerboard.runs.inputs import AFTER_ANY_END
from steerboard_contracts.recipes.sweep import PlannedHalving, PlannedRung, SweepGoal

STEPS = "max_steps"
MOST_RUNGS = 8


class HalvingBlock(BaseModel):
    """What is under `sweep.halving`. Without `figure` that of the sweep decides, where training measures it. `rungs`:
    steps of each."""

    model_config = ConfigDict(extra="forbid")

    rungs: Annotated[list[Annotated[int, Field(ge=1)]], Field(min_length=2, max_length=MOST_RUNGS)]
    factor: Annotated[int, Field(ge=2)] = 2
    figure: str | None = None
    goal: SweepGoal | None = None


class Swept(Protocol):
    """What a sweep varies."""

    @property
    def vary(self) -> Mapping[str, Any]: ...


def check_rungs(
    block: HalvingBlock, swept: Swept, stage: str, fields: Mapping[str, Any], stages: Sequence[str]
) -> list[tuple[tuple[str, ...], str]]:
    """What is wrong with the rungs of `stage`, by key of the sweep; `stages`: that of each variant."""
    rungs, factor, number = block.rungs, block.factor, len(set(stages))
    counted = f"{number} variants"
    if number < len(stages):
        counted = f"{number} different `{stage}` in {len(stages)} variants"
    faults: list[tuple[tuple[str, ...], str]] = []
    if any(later <= earlier for earlier, later in itertools.pairwise(rungs)):
        faults.append((("halving", "rungs"), f"each rung needs more steps than the one before, got {rungs}"))
    if number < factor:
        faults.append((("halving", "factor"), f"is {factor}, and there are {counted}: none would be left"))
    elif number // factor ** (len(rungs) - 2) < factor:
        useful = next(n for n in range(1, len(rungs)) if number // factor**n < factor) + 1
        message = f"after {useful - 1} of them 1 of {counted} is left: give at most {useful} rungs"
        faults.append((("halving", "rungs"), message))
    if f"{stage}.{STEPS}" in swept.vary:
        faults.append((("vary", f"{stage}.{STEPS}"), f"the rungs of the halving set the steps of `{stage}`"))
    given = fields.get(STEPS)
    if given is not None and given != rungs[-1]:
        message = f"`{stage}` has {STEPS} {given}, and its last rung {rungs[-1]}: leave {STEPS} out of it"
        faults.append((("halving", "rungs"), message))
    return faults


def rung_name(stage: str, rung: int, last: int) -> str:
    """How a stage's copy of a rung is called; the last rung's is the stage itself."""
    return stage if rung == last else f"{stage}-rung{rung}"


def with_rungs(stages: Iterable[Stage], planned: PlannedHalving) -> Iterator[Stage]:
    """The stages, with those of every rung but the last before the stage that they are of."""
    last = planned.rungs[-1]
    for stage in stages:
        if stage.name not in last.stages:
            yield stage
            continue
        place = last.stages.index(stage.name)
        for rung in planned.rungs:
            yield replace(stage.put((STEPS,), rung.steps), name=rung.stages[place])


def plan_halving(block: HalvingBlock, stages: list[str], figure: str, goal: SweepGoal) -> PlannedHalving:
    """`stages`: that of each variant, by number."""
    last = len(block.rungs)
    rungs = [
        PlannedRung(number=n, steps=steps, stages=[rung_name(stage, n, last) for stage in stages])
        for n, steps in enumerate(block.rungs, start=1)
    ]
    return PlannedHalving(figure=figure, goal=goal, factor=block.factor, rungs=rungs)


def await_rungs(planned: PlannedHalving, inputs: Mapping[str, dict[str, Source]]) -> dict[str, dict[str, Source]]:
    """A rung waits until all of the rung before have ended, one way or another."""
    awaited = {**inputs}
    for former, rung in itertools.pairwise(planned.rungs):
        ended: dict[str, Source] = {
            f"{AFTER_ANY_END}{place}": StageRef(other) for place, other in enumerate(dict.fromkeys(former.stages))
        }
        awaited |= {name: {**inputs[name], **ended} for name in rung.stages if name in inputs}
    return awaited
