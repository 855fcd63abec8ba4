"""Conservative DPO: DPO with smoothed labels."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from steerboard_contracts.methods.cdpo import CdpoConfig
from steerboard_workers.alignment.pairs import BetaPairs


class Cdpo(BetaPairs[CdpoConfig]):
    """-(1 - e) log sigma(beta h) - e log sigma(-beta h)."""

    def loss(self, chosen: Tensor, rejected: Tensor) -> Tensor:
        e, margin = self.config.label_smoothing, self.scale * (chosen - rejected)
        return -(1 - e) * F.logsigmoid(margin) - e * F.logsigmoid(-margin)
