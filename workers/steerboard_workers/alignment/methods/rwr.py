"""Reward-weighted regression: Eq. 5 of arXiv 2308.12050, weights exp(z / beta)."""

from __future__ import annotations

from collections.abc import Sequence

from steerboard_contracts.methods.rwr import RwrConfig
from steerboard_contracts.online.reward_weights import exponential_weight
from steerboard_contracts.prompts import Normaliser
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.losses import effective_sample_size
from steerboard_workers.alignment.objectives import LanguageObjective, Objective
from steerboard_workers.alignment.rendering.render import RenderedGroup
from steerboard_workers.alignment.training_method import RewardedMethod, Row, Selection


class Rwr(RewardedMethod[RwrConfig]):
    """Reports the spread of the weights."""

    def select_rewarded(self, rows: list[Row], rewards: Sequence[float], normaliser: Normaliser) -> Selection:
        weights = [self._weight(row) for row in rows]
        size = effective_sample_size(weights)
        note = f"weights exp(z / {self.config.beta:g}): effective sample size {size:.1%}, largest {max(weights):.3g}"
        return Selection(rows, summary={"effective_sample_size": size}, notes=[note])

    def example(self, number: int, row: Row, group: RenderedGroup) -> Example:
        return Example.of(number, group, weight=self._weight(row))

    def objective(self) -> Objective:
        config = self.config
        return LanguageObjective(weighted=True, self_normalised=config.self_normalised, max_weight=config.max_weight)

    def _weight(self, row: Row) -> float:
        return exponential_weight(row["z"], self.config.beta, self.config.max_weight)
