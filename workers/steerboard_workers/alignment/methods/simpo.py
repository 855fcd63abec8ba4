"""Simple preference optimisation: Eq. 6 of arXiv 2405.14734."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from steerboard_contracts.methods.simpo import SimpoConfig
from steerboard_workers.alignment.pairs import PairMethod, Responses


class Simpo(PairMethod[SimpoConfig]):
    """-log sigma(beta (m_w - m_l - gamma / beta)), m the mean log-prob of a response's tokens."""

    def score(self, responses: Responses) -> Tensor:
        return responses.means

    def loss(self, chosen: Tensor, rejected: Tensor) -> Tensor:
        return -F.logsigmoid(self.config.beta * (chosen - rejected - self.config.gamma_beta_ratio))

    @property
    def scale(self) -> float:
        return self.config.beta

    @property
    def sft_weight(self) -> float:
        return self.config.sft_weight
