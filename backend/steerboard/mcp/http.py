"""Streamable HTTP: every caller's own bearer token, and only the hosts and origins that the operator names."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import httpx
from cachetools import TTLCache
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.authentication import AuthenticationError

from steerboard.mcp.boards import CallersBoards
from steerboard.mcp.server import make_server
from steerboard_contracts.errors import BadInput

PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
# A revoked token has no rights from the next call on, for the API checks each; here it is known for this long.
_KNOWN_SECONDS, _MOST_KNOWN = 30.0, 1000
_TIMEOUT = httpx.Timeout(20.0, connect=5.0)


class TokensOfTheBoard(TokenVerifier):
    """Asks the server whose tokens they are. No token is kept: what is known is found by its hash."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._known: TTLCache[str, dict[str, Any]] = TTLCache(_MOST_KNOWN, _KNOWN_SECONDS)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Raises `AuthenticationError` where the server does not answer."""
        if not (token.isascii() and token.isprintable() and token):
            return None
        key = hashlib.sha256(token.encode()).hexdigest()
        claims = self._known.get(key)
        if claims is None:
            claims = await self._lookup(token)
            if claims is None:
                return None
            self._known[key] = claims
        return AccessToken(token=token, client_id=key[:32], scopes=[], claims=claims)

    async def _lookup(self, token: str) -> dict[str, Any] | None:
        try:
            async with httpx.AsyncClient(base_url=self._url, timeout=_TIMEOUT) as client:
                answer = await client.get("/api/v1/projects", headers={"Authorization": f"Bearer {token}"})
        except httpx.HTTPError as error:
            raise AuthenticationError(f"the Steerboard server does not answer: {error}") from error
        if answer.status_code in (401, 403):
            return None
        if not answer.is_success:
            raise AuthenticationError(f"the Steerboard server answered {answer.status_code}")
        return {"projects": [project["name"] for project in answer.json()["items"]]}


def refuse_open_server(host: str, allowed_hosts: Sequence[str]) -> None:
    """Raises `BadInput` (`no_allowed_host`) for an address that others reach where no name is allowed."""
    if host not in LOOPBACK and not allowed_hosts:
        raise BadInput(
            f"other machines can reach {host}, and no host name is allowed",
            code="no_allowed_host",
            hint="Give --allowed-host NAME for each name under which clients call it, and put a TLS proxy in front.",
        )


def http_app(
    url: str, project: str | None, host: str, port: int, allowed_hosts: Sequence[str], allowed_origins: Sequence[str]
) -> Starlette:
    """The application for `host` and `port`. `allowed_hosts`: further names in the header Host, such as
    `mcp.example.org`. Web pages may call it from `allowed_origins` and from this machine alone."""
    here = [f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")]
    security = TransportSecuritySettings(
        allowed_hosts=[*here, *(form for name in allowed_hosts for form in (name, f"{name}:{port}"))],
        allowed_origins=[*(f"http://{host_}" for host_ in here), *allowed_origins],
    )
    # No OAuth server is named: tokens come from the dashboard or the command line.
    auth = AuthSettings(issuer_url=AnyHttpUrl(url), resource_server_url=None)
    server = make_server(CallersBoards(url, project), auth=auth, verifier=TokensOfTheBoard(url))
    return server.streamable_http_app(streamable_http_path=PATH, transport_security=security, host=host)
