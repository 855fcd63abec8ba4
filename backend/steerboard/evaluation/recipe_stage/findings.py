"""What a recipe's evaluate stage reports from: its evaluation's report, and what that does not have."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from steerboard.evaluation.recipe_stage.judge import Judged
from steerboard.evaluation.report.data import EntrantFacts, EvaluationData, Floats, RewardFacts
from steerboard.evaluation.report.sections.several_rewards import reward_grid
from steerboard_contracts.known_quality import KNOWN_QUALITY
from steerboard_contracts.models import ModelInfo
from steerboard_contracts.report.evaluation import EvaluationReport
from steerboard_contracts.report.sections.rewards import RewardReport
from steerboard_contracts.stage.outputs import RewardSummary


@dataclass(frozen=True)
class Findings:
    """All that the section is made of. `entrants`: how many of the evaluation's first entrants are the recipe's;
    `rewards`: how many of its reward models. `models`: what is known of each entrant's. `shown`: by prompt, its text
    and the answers of the entrants. `graded_by`: who gave the labelled rows their rewards, where that was not the first
    reward model; `summed`: of how many rewards, the first one's among them, that is the sum."""

    data: EvaluationData
    report: EvaluationReport
    entrants: int
    rewards: int
    models: Mapping[uuid.UUID, ModelInfo] = field(default_factory=dict)
    shown: Mapping[int, tuple[str, Mapping[uuid.UUID, str]]] = field(default_factory=dict)
    graded_by: str | None = None
    summed: int = 0
    judged: Judged | None = None

    @property
    def entries(self) -> list[EntrantFacts]:
        return self.data.entrants[: self.entrants]

    @cached_property
    def sources(self) -> list[RewardReport]:
        """The recipe's reward models. People may have asked others since; those of the recipe were the first."""
        models = [source for source in self.report.rewards if source.reward_model != KNOWN_QUALITY]
        return models[: self.rewards]

    @property
    def main(self) -> RewardReport:
        return self.sources[0]

    @property
    def independent(self) -> RewardReport | None:
        return next((source for source in self.sources[1:] if not source.trained), None)

    @cached_property
    def facts(self) -> RewardFacts:
        """The first reward model's."""
        return next(facts for facts in self.data.rewards if facts.name == self.main.reward_model)

    @cached_property
    def summary(self) -> RewardSummary:
        return RewardSummary.model_validate(self.facts.summary or {})

    def last_two(self) -> tuple[Floats, Floats]:
        """The first reward model's scores of the last two entrants, in its units, means over samples: (prompts,)."""
        grid = reward_grid(self.data, self.facts, 1 + int(self.facts.sample.max(initial=0)))
        means = np.nanmean(grid[:, self.entrants - 2 : self.entrants], axis=2)
        before, after = np.vectorize(self.in_units, otypes=[float])(means).T
        return before, after

    def in_units(self, reward: float) -> float:
        """z where the first reward model has a normaliser, else as it is."""
        return self.facts.normaliser.z(reward) if self.facts.normaliser else reward
