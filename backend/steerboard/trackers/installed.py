"""Whether this server has what a tracker needs. Nothing is imported for it."""

from __future__ import annotations

import importlib.util

from steerboard_contracts.errors import SteerboardError

# By kind, the package that `steerboard[KIND]` brings. MLflow is asked by its REST API.
_PACKAGES = {"wandb": "wandb", "tensorboard": "tensorboardX", "trackio": "trackio"}


class TrackerMissing(SteerboardError):
    """The server lacks the package that writes to this tracker."""

    code = "tracker_missing"
    status = 409
    title = "The tracker's package is not installed"


def require(kind: str) -> None:
    """Raises `TrackerMissing`."""
    package = _PACKAGES.get(kind)
    if package is not None and importlib.util.find_spec(package) is None:
        raise TrackerMissing(
            f"this server lacks the package {package}, which writes to {kind}",
            hint=f"Its operator installs it with `pip install 'steerboard[{kind}]'` and starts the server again.",
        )
