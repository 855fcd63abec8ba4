"""Advantages of whole answers: rewards less their group's mean, over a standard deviation. Methods that share these
differ in their configs alone."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.online.policy_gradient import ScaledConfig
from steerboard_workers.alignment.online.answers import Answers
from steerboard_workers.alignment.online.method import PolicyGradientMethod
from steerboard_workers.alignment.policy_gradient.advantages import batch_standardised, centred, standardised

Config = TypeVar("Config", bound=ScaledConfig)

_SCALED = {"std": standardised, "batch": batch_standardised, "none": centred}


class ScaledMethod(PolicyGradientMethod[Config]):
    def advantages(self, answers: Answers) -> list[NDArray[np.float64]]:
        """r less the group's mean, over the standard deviation that `scaling` names."""
        return answers.spread(_SCALED[self.config.scaling](answers.penalised(self.config.kl_weight)))
