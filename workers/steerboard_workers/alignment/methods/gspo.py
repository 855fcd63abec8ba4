"""Group sequence policy optimisation: Eq. 5 to 7 of arXiv 2507.18071."""

from __future__ import annotations

from steerboard_contracts.methods.gspo import GspoConfig
from steerboard_workers.alignment.online.scaled import ScaledMethod


class Gspo(ScaledMethod[GspoConfig]):
    """Advantages, loss and KL are those of the config."""
