"""Direct preference optimisation: Eq. 7 of arXiv 2305.18290."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from steerboard_contracts.methods.dpo import DpoConfig
from steerboard_workers.alignment.pairs import BetaPairs


class Dpo(BetaPairs[DpoConfig]):
    """-log sigma(beta h)."""

    def loss(self, chosen: Tensor, rejected: Tensor) -> Tensor:
        return -F.logsigmoid(self.scale * (chosen - rejected))
