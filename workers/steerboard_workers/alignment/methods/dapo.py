"""Decoupled clip and dynamic sampling policy optimisation: Eq. 8 to 13 of arXiv 2503.14476."""

from __future__ import annotations

from steerboard_contracts.methods.dapo import DapoConfig
from steerboard_workers.alignment.online.scaled import ScaledMethod


class Dapo(ScaledMethod[DapoConfig]):
    """Advantages, loss and KL are those of the config."""
