"""Soft adaptive policy optimisation: arXiv 2511.20347."""

from __future__ import annotations

from steerboard_contracts.methods.sapo import SapoConfig
from steerboard_workers.alignment.online.scaled import ScaledMethod


class Sapo(ScaledMethod[SapoConfig]):
    """Advantages, loss and KL are those of the config."""
