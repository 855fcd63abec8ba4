"""Mixed preference optimisation: arXiv 2411.10442."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from steerboard_contracts.methods.mpo import MpoConfig
from steerboard_workers.alignment.pairs import BetaPairs


class Mpo(BetaPairs[MpoConfig]):
    """-w_p log sigma(r_w - r_l) - w_q (log sigma(r_w) + log sigma(-r_l)) + w_g SFT."""

    def loss(self, chosen: Tensor, rejected: Tensor) -> Tensor:
        chosen, rejected = self.scale * chosen, self.scale * rejected
        preference = -F.logsigmoid(chosen - rejected)
        quality = -F.logsigmoid(chosen) - F.logsigmoid(-rejected)
        return self.config.preference_weight * preference + self.config.quality_weight * quality
