"""A sweep as it was planned: which fields of a recipe vary, the variants, and the figure that decides between them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel

from steerboard_contracts.conditions.condition import Condition

SweepSearch = Literal["grid", "random"]
SweepGoal = Literal["maximize", "minimize"]


class PlannedVariant(BaseModel):
    """One choice of `values`, by field (`tuned.beta`). `judged`: the stage whose figure decides. `stages`: those of
    this variant that are not the same in every one; a stage that several variants share has the number of the first."""

    number: int
    values: dict[str, Any]
    judged: str
    stages: list[str]


class PlannedRung(BaseModel):
    """`stages`: that of each variant, by number, which trains for `steps`."""

    number: int
    steps: int
    stages: list[str]


class PlannedHalving(BaseModel):
    """The best 1 / `factor` of each rung's stages continue after it, by `figure` in their summaries. A stage that
    several variants share counts once. The last rung is that of the sweep's own stages."""

    figure: str
    goal: SweepGoal
    factor: int
    rungs: list[PlannedRung]

    def rung_of(self, stage: str) -> PlannedRung | None:
        """Returns None for a stage that is of no rung."""
        return next((rung for rung in self.rungs if stage in rung.stages), None)

    @property
    def shared(self) -> bool:
        """Whether variants share a stage of the rungs, so that these have fewer stages than there are variants."""
        return self.kept(0) < len(self.rungs[0].stages)

    def kept(self, rung: int) -> int:
        """How many stages are left after so many rungs."""
        left = len(set(self.rungs[0].stages))
        for _ in range(rung):
            left = max(1, left // self.factor)
        return left


class PlannedSweep(BaseModel):
    """`metric` as the recipe names it. Of an evaluation, `stage` is its stage, `judge` the place of the reward model
    among its `rewards`, and `score` what the policies are asked for; of training, `figure` is one of the held-out
    figures in the summary of each `judged` stage. `seed`: of a random search."""

    search: SweepSearch
    seed: int | None
    fields: list[str]
    metric: str
    goal: SweepGoal
    stage: str | None = None
    judge: int = 0
    score: Condition | None = None
    figure: str | None = None
    halving: PlannedHalving | None = None
    variants: list[PlannedVariant]
