"""Group reward-decoupled normalisation policy optimisation: arXiv 2601.05242."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.methods.gdpo import GdpoConfig
from steerboard_workers.alignment.online.answers import Answers
from steerboard_workers.alignment.online.method import PolicyGradientMethod
from steerboard_workers.alignment.policy_gradient.advantages import decoupled


class Gdpo(PolicyGradientMethod[GdpoConfig]):
    def advantages(self, answers: Answers) -> list[NDArray[np.float64]]:
        """Each reward over its group's standard deviation, weighted, added, and whitened over all answers."""
        names = list(answers.sources)
        found = decoupled([answers.sources[name] for name in names], [answers.weights[name] for name in names])
        return answers.spread(found)
