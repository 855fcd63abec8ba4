"""Clipped importance-sampling-weight policy optimisation: Eq. 4 and 5 of arXiv 2506.13585."""

from __future__ import annotations

from steerboard_contracts.methods.cispo import CispoConfig
from steerboard_workers.alignment.online.scaled import ScaledMethod


class Cispo(ScaledMethod[CispoConfig]):
    """Advantages, loss and KL are those of the config."""
