"""Group reward-decoupled normalisation policy optimisation: arXiv 2601.05242."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.methods.gdpo import GdpoConfig
from steerboard_workers.alignment.online.answers import Answers, equal_groups
from steerboard_workers.alignment.online.method import PolicyGradientMethod
from steerboard_workers.alignment.policy_gradient.advantages import decoupled


class Gdpo(PolicyGradientMethod[GdpoConfig]):
    def advantages(self, answers: Answers) -> list[NDArray[np.float64]]:
        """Each reward over its group's standard deviation, weighted, added, and whitened over all answers."""
        # One of weight 0 teaches nothing, so it must not leave out what it cannot score.
        names = [name for name in answers.sources if answers.weights[name]]
        advantages = decoupled([answers.sources[name] for name in names], [answers.weights[name] for name in names])
        return answers.spread(advantages)

    def tied(self, answers: Answers) -> NDArray[np.bool_]:
        """Whether every reward is equal within the group: rewards that differ may add up to the same."""
        unscored = np.isnan(answers.rewards)
        tied = np.ones(len(answers.rewards), dtype=np.bool_)
        for name, rewards in answers.sources.items():
            if answers.weights[name]:
                tied &= equal_groups(np.where(unscored, np.nan, rewards))
        return tied
