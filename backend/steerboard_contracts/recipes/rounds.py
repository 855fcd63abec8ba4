"""Rounds of a recipe as they were planned."""

from __future__ import annotations

import uuid

from pydantic import BaseModel


class PlannedRound(BaseModel):
    """`stages` in their order, the same in each round: the last one makes the round's policy. `check`: the evaluation
    that the stop rule reads, where the recipe has one."""

    number: int
    stages: list[str]
    check: str | None = None

    @property
    def policy(self) -> str:
        """The stage that makes it."""
        return self.stages[-1]


class PlannedRounds(BaseModel):
    """`start`: what the first round began with, a stage or, with `start_model`, a model. `judge`: who stops the
    rounds, as the recipe names it."""

    start: str
    start_model: uuid.UUID | None = None
    judge: str | None = None
    rounds: list[PlannedRound]

    def round_of(self, stage: str) -> PlannedRound | None:
        """Returns None for a stage outside of the rounds."""
        return next((planned for planned in self.rounds if stage == planned.check or stage in planned.stages), None)
