"""`steerboard_contracts.network.safe_http` with what the operator of this process allows."""

from __future__ import annotations

import httpx

from steerboard import __version__
from steerboard.platform.settings import Settings
from steerboard_contracts.network import safe_http
from steerboard_contracts.network.addresses import AllowList
from steerboard_contracts.network.safe_http import AddressRefused, BadUrl, check_url, read_start

__all__ = ["AddressRefused", "BadUrl", "check_url", "open_client", "read_start", "refuse_private"]


def refuse_private(settings: Settings, url: str) -> None:
    """Raises `AddressRefused`."""
    safe_http.refuse_private(AllowList(settings.allowed_private), url)


def open_client(settings: Settings, *, timeout_seconds: float, total_seconds: float | None = None) -> httpx.Client:
    """See `safe_http.open_client`."""
    return safe_http.open_client(
        AllowList(settings.allowed_private),
        timeout_seconds=timeout_seconds,
        total_seconds=total_seconds,
        agent=f"steerboard/{__version__}",
    )
