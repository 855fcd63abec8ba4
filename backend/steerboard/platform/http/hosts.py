"""Which names a browser may reach the server by.

A page of another site whose name suddenly leads to this machine (DNS rebinding) is of the same origin to the browser;
only the Host header gives it away.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from steerboard.platform.http.errors import problem_response
from steerboard.platform.settings import Settings
from steerboard_contracts.errors import SteerboardError

_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
# Probes and scrapers ask by the address of a container, without a cookie.
_PROBES = frozenset({"/api/v1/system/live", "/api/v1/system/health", "/metrics"})


class UnknownHost(SteerboardError):
    """The server does not go by the name that the request asks for."""

    code = "unknown_host"
    status = 421
    title = "The server does not have this name"


@dataclass(frozen=True)
class Hosts:
    """`names` with a leading dot are of a domain and all below it. `addresses`: any IP address will do, since no name
    leads to it that another site could have chosen. `all`: so will every name."""

    names: frozenset[str]
    addresses: bool = False
    all: bool = False

    @classmethod
    def of(cls, settings: Settings) -> Hosts:
        """The names that were given, this machine's and that of the public URL. With none given, every name where a
        server outside of production listens to other machines, which know it by a name of their own."""
        given = {name.lower().removeprefix("*") for name in settings.allowed_hosts.replace(",", " ").split()}
        development = settings.environment != "production"
        open_to_all = "" in given or (development and not given and settings.host not in _LOCAL)
        public = urlsplit(settings.public_url).hostname
        return cls(frozenset(given | _LOCAL | ({public} if public else set())), development, open_to_all)

    def has(self, header: str) -> bool:
        """`header`: as in Host, perhaps with a port."""
        if self.all:
            return True
        try:
            name = urlsplit(f"//{header}").hostname or ""
        except ValueError:
            return False
        name = name.removesuffix(".")
        if name in self.names or any(name.endswith(domain) for domain in self.names if domain.startswith(".")):
            return True
        return self.addresses and _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class AllowedHosts:
    """Refuses requests for other names, before anything else looks at them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and scope["path"] not in _PROBES:
            host = Headers(scope=scope).get("host", "")
            if not scope["app"].state.hosts.has(host):
                refused = UnknownHost(
                    f"this server does not answer to the name {host[:200]!r}",
                    hint="The operator can add the name to STEERBOARD_ALLOWED_HOSTS.",
                )
                await problem_response(refused)(scope, receive, send)
                return
        await self._app(scope, receive, send)
