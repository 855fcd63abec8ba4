"""The OpenID provider at which people sign in (`STEERBOARD_OIDC_ISSUER` and what belongs to it).

Discovery, state, nonce, PKCE and the checks of the ID token are Authlib's. What a sign-in under way has to remember
is a sealed cookie of ten minutes, so that any process of the API can finish it.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import httpx
from authlib.common.errors import AuthlibBaseError
from authlib.integrations.starlette_client import OAuth, StarletteOAuth2App
from fastapi import Request
from joserfc.errors import JoseError

from steerboard.platform.http.errors import NotFound, Unauthenticated
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings
from steerboard_contracts.errors import SteerboardError

log = logging.getLogger(__name__)

CALLBACK = "/sign-in/oidc/callback"
COOKIE = "steerboard_oidc"
COOKIE_SECONDS = 600
_STEP_SECONDS = 10.0
# More would not fit into a cookie; each is a tab in which a sign-in is under way.
_LONGEST_COOKIE = 3500


@dataclass(frozen=True)
class Claims:
    """What the provider vouches for. `email` is None unless the provider has verified it."""

    issuer: str
    subject: str
    name: str | None
    email: str | None
    groups: frozenset[str]


def refused() -> Unauthenticated:
    return Unauthenticated(
        "Signing in at the OpenID provider did not succeed.",
        code="oidc_failed",
        hint="Start again from the sign-in page; the server's log has the reason.",
    )


async def begin(request: Request, settings: Settings, secrets: Secrets, back: str) -> tuple[str, str]:
    """The provider's address to send the browser to, and the cookie to give it. Raises `NotFound`, `Unauthenticated`
    (`oidc_failed`)."""
    client = _client(settings)
    request.scope["session"] = {}
    try:
        await _check_issuer(client, settings)
        authorization = await client.create_authorization_url(f"{settings.public_url}{CALLBACK}")
        await client.save_authorize_data(request, redirect_uri=f"{settings.public_url}{CALLBACK}", **authorization)
    except (AuthlibBaseError, httpx.HTTPError, ValueError, RuntimeError) as error:
        log.warning("the OpenID provider cannot be asked: %s: %s", type(error).__name__, error)
        raise refused() from None
    kept = secrets.seal(json.dumps({"session": request.session, "back": back[:500]}))
    if len(kept) > _LONGEST_COOKIE:
        kept = secrets.seal(json.dumps({"session": request.session, "back": ""}))
    return authorization["url"], kept


async def finish(request: Request, settings: Settings, secrets: Secrets) -> tuple[Claims, str]:
    """Who came back from the provider, and to which page they go. Raises `NotFound`, `Unauthenticated`
    (`oidc_failed`)."""
    client = _client(settings)
    try:
        kept = json.loads(secrets.open(request.cookies.get(COOKIE, "")))
        request.scope["session"] = kept["session"]
        token = await client.authorize_access_token(request)
        claims = dict(token["userinfo"])
        if settings.oidc_groups_claim not in claims or "email" not in claims:
            claims = await _with_userinfo(client, token, claims)
    except (AuthlibBaseError, JoseError, httpx.HTTPError, SteerboardError, ValueError, KeyError, RuntimeError) as error:
        log.warning("a sign-in at the OpenID provider failed: %s: %s", type(error).__name__, error)
        raise refused() from None
    return _claims(settings, claims), str(kept["back"])


async def _with_userinfo(client: StarletteOAuth2App, token: dict[str, Any], claims: dict[str, Any]) -> dict[str, Any]:
    """Some providers put groups only there. It counts for the same person alone, and never over the ID token."""
    metadata = await client.load_server_metadata()
    if "userinfo_endpoint" not in metadata:
        return claims
    more = dict(await client.userinfo(token=token))
    return {**more, **claims} if more.get("sub") == claims["sub"] else claims


def _claims(settings: Settings, claims: dict[str, Any]) -> Claims:
    groups = claims.get(settings.oidc_groups_claim) or []
    email = claims.get("email") if claims.get("email_verified") is True else None
    return Claims(
        issuer=str(claims["iss"]),
        subject=str(claims["sub"]),
        name=str(claims.get("preferred_username") or claims.get("email") or "") or None,
        email=email.lower() if isinstance(email, str) else None,
        groups=frozenset(map(str, groups if isinstance(groups, list) else [groups])),
    )


async def _check_issuer(client: StarletteOAuth2App, settings: Settings) -> None:
    """The provider must be who it was asked as (OpenID Connect Discovery, 4.3)."""
    issuer = (await client.load_server_metadata()).get("issuer")
    if str(issuer).rstrip("/") != settings.oidc_issuer.rstrip("/"):
        raise ValueError(f"its issuer is {issuer!r}, not STEERBOARD_OIDC_ISSUER")


def _client(settings: Settings) -> StarletteOAuth2App:
    if not settings.oidc_issuer:
        raise NotFound("this server has no OpenID provider", hint="Its operator sets STEERBOARD_OIDC_ISSUER.")
    secret = settings.oidc_client_secret.get_secret_value()
    return _registered(settings.oidc_issuer.rstrip("/"), settings.oidc_client_id, secret, settings.oidc_scopes)


@lru_cache(maxsize=4)
def _registered(issuer: str, client_id: str, secret: str, scopes: str) -> StarletteOAuth2App:
    """A client that keeps the provider's metadata and keys, once they are known."""
    made = OAuth().register(
        "oidc",
        server_metadata_url=f"{issuer}/.well-known/openid-configuration",
        client_id=client_id,
        client_secret=secret or None,
        client_kwargs={
            "scope": scopes,
            "code_challenge_method": "S256",
            "timeout": _STEP_SECONDS,
            **({} if secret else {"token_endpoint_auth_method": "none"}),
        },
    )
    assert isinstance(made, StarletteOAuth2App)
    return made
