"""Robust DPO: arXiv 2403.00409."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from steerboard_contracts.methods.robust_dpo import RobustDpoConfig
from steerboard_workers.alignment.pairs import BetaPairs


class RobustDpo(BetaPairs[RobustDpoConfig]):
    """(-(1 - e) log sigma(beta h) + e log sigma(-beta h)) / (1 - 2e)."""

    def loss(self, chosen: Tensor, rejected: Tensor) -> Tensor:
        e, margin = self.config.label_smoothing, self.scale * (chosen - rejected)
        return (-(1 - e) * F.logsigmoid(margin) + e * F.logsigmoid(-margin)) / (1 - 2 * e)
