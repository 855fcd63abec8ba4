"""Whether another site made the browser send a request. Programs send none of these headers and are let through."""

from __future__ import annotations

from urllib.parse import urlsplit

from fastapi import Request

from steerboard.platform.http.errors import Forbidden

_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_OWN = ("same-origin", "none")


def refuse_other_sites(request: Request) -> None:
    """Check requests that change something by a cookie, or that set one. Raises `Forbidden` (`cross_site`).

    `Sec-Fetch-Site` decides where the browser sends it, since no proxy changes it; `Origin` against `Host` elsewhere.
    """
    site = request.headers.get("Sec-Fetch-Site")
    origin = request.headers.get("Origin")
    own = site in _OWN if site is not None else origin is None or _is_host(origin, request.headers.get("Host", ""))
    if not own:
        raise Forbidden(
            f"This request came from another site, {origin or 'which the browser does not name'}.",
            code="cross_site",
            hint="Open Steerboard directly; a proxy in front of it must forward the Host header.",
        )


def _is_host(origin: str, host: str) -> bool:
    """Compares without the scheme, which a proxy with TLS changes."""
    parts = urlsplit(origin)
    port = _DEFAULT_PORTS.get(parts.scheme)
    if port is None:
        return False
    return parts.netloc.lower().removesuffix(port) == host.lower().removesuffix(port)
