"""Group relative policy optimisation, Eq. 3 of arXiv 2402.03300, and without its biases, arXiv 2503.20783."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.methods.grpo import GrpoConfig
from steerboard_workers.alignment.online.answers import Answers
from steerboard_workers.alignment.online.method import PolicyGradientMethod
from steerboard_workers.alignment.policy_gradient.advantages import centred, standardised


class Grpo(PolicyGradientMethod[GrpoConfig]):
    def advantages(self, answers: Answers) -> list[NDArray[np.float64]]:
        """r less the group's mean, over its standard deviation unless `scaling` is none."""
        rewards = answers.penalised(self.config.kl_weight)
        return answers.spread(standardised(rewards) if self.config.scaling == "std" else centred(rewards))
