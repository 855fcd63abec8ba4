"""REINFORCE++ and its form with a baseline: arXiv 2501.03262."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.methods.reinforce_pp import ReinforcePpConfig
from steerboard_workers.alignment.online.answers import Answers
from steerboard_workers.alignment.online.method import PolicyGradientMethod
from steerboard_workers.alignment.policy_gradient.advantages import centred, padded, token_returns, whiten


class ReinforcePp(PolicyGradientMethod[ReinforcePpConfig]):
    def advantages(self, answers: Answers) -> list[NDArray[np.float64]]:
        """Whitened over all tokens of the sampling: returns of single tokens, where the reward comes with the last one
        of a turn and the KL with each; with a baseline, the rewards of whole answers less their group's mean."""
        weight = self.config.kl_weight
        if self.config.baseline:
            of_tokens = answers.spread(centred(answers.penalised(weight)))
            values, mask = padded(of_tokens)
        else:
            of_tokens = [placed - weight * r for placed, r in zip(answers.placed, answers.log_ratios, strict=True)]
            rewards, mask = padded(of_tokens)
            values = token_returns(rewards, mask)
        whitened = whiten(values, mask)
        return [row[inside] for row, inside in zip(whitened, mask, strict=True)]
