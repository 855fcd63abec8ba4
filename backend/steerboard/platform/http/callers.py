"""Whom a request is from, before the database is asked."""

from __future__ import annotations

import threading
from collections import OrderedDict

from fastapi import Request

from steerboard.platform.security.credentials import SESSION_COOKIE, secret_hash

_MOST = 10_000


class Callers:
    """The callers who were found behind credentials, so that all requests of one person count as one caller's.

    An unknown credential counts as its address: otherwise anyone who makes up new ones would be many callers.
    """

    def __init__(self) -> None:
        self._known: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def note(self, request: Request, caller: str) -> None:
        """Called once the database has confirmed the credential."""
        credential = _credential(request)
        if credential is None:
            return
        with self._lock:
            self._known[credential] = caller
            self._known.move_to_end(credential)
            if len(self._known) > _MOST:
                self._known.popitem(last=False)

    def get(self, request: Request) -> str | None:
        credential = _credential(request)
        return None if credential is None else self._known.get(credential)


def caller_of(request: Request) -> str:
    """A person or a token that was seen before, or the address of the client."""
    callers: Callers = request.app.state.callers
    return callers.get(request) or f"address:{request.client.host if request.client else ''}"


def _credential(request: Request) -> str | None:
    """Hashed. As `accounts.access.identify` reads it."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    secret = token.strip() if scheme.lower() == "bearer" else request.cookies.get(SESSION_COOKIE)
    return secret_hash(secret) if secret else None
