"""Identity preference optimisation: Eq. 17 of arXiv 2310.12036."""

from __future__ import annotations

from torch import Tensor

from steerboard_contracts.methods.ipo import IpoConfig
from steerboard_workers.alignment.pairs import ReferencedPairs


class Ipo(ReferencedPairs[IpoConfig]):
    """(h - 1 / (2 tau))^2."""

    def loss(self, chosen: Tensor, rejected: Tensor) -> Tensor:
        return (chosen - rejected - 1 / (2 * self.config.tau)).square()

    @property
    def scale(self) -> float:
        return self.config.tau
