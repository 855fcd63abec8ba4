"""REINFORCE leave-one-out: Section 3.2 of arXiv 2402.14740. What is common to such methods is in `alignment.online`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.methods.rloo import RlooConfig
from steerboard_workers.alignment.online.answers import Answers
from steerboard_workers.alignment.online.method import PolicyGradientMethod
from steerboard_workers.alignment.policy_gradient.advantages import leave_one_out


class Rloo(PolicyGradientMethod[RlooConfig]):
    def advantages(self, answers: Answers) -> list[NDArray[np.float64]]:
        """R(y_i) - mean of R(y_j), j != i, where R is the reward less the KL of the whole answer."""
        return answers.spread(leave_one_out(answers.penalised(self.config.kl_weight)))
