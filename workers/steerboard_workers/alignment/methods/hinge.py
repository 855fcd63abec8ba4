"""A hinge on log-ratios, as in SLiC: arXiv 2305.10425 and 2309.06657."""

from __future__ import annotations

import torch
from torch import Tensor

from steerboard_contracts.methods.hinge import HingeConfig
from steerboard_workers.alignment.pairs import BetaPairs


class Hinge(BetaPairs[HingeConfig]):
    """max(0, 1 - beta h)."""

    def loss(self, chosen: Tensor, rejected: Tensor) -> Tensor:
        return torch.relu(1 - self.scale * (chosen - rejected))
