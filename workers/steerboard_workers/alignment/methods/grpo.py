"""Group relative policy optimisation, Eq. 3 of arXiv 2402.03300, and without its biases, arXiv 2503.20783."""

from __future__ import annotations

from steerboard_contracts.methods.grpo import GrpoConfig
from steerboard_workers.alignment.online.scaled import ScaledMethod


class Grpo(ScaledMethod[GrpoConfig]):
    """Advantages, loss and KL are those of the config."""
