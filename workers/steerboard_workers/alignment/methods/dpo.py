"""Direct preference optimisation: Eq. 7 of arXiv 2305.18290."""

from __future__ import annotations

from steerboard_contracts.methods.dpo import DpoConfig
from steerboard_workers.alignment.pairs import LogisticPairs


class Dpo(LogisticPairs[DpoConfig]):
    """The logistic loss of a pair's margin."""
