"""Passwords as argon2id hashes."""

from __future__ import annotations

import threading
from functools import cache

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from steerboard.platform.security.credentials import new_secret

MINIMUM_LENGTH = 10
MAXIMUM_LENGTH = 1024
_hasher = PasswordHasher()
# Each takes 64 MB; without a bound, a flood of sign-ins would take the machine's memory.
_at_once = threading.BoundedSemaphore(4)


def hashed(password: str) -> str:
    with _at_once:
        return _hasher.hash(password)


def matches(stored: str | None, password: str) -> bool:
    """Takes the same time with and without a stored hash, so the time does not reveal which names exist."""
    nobodys = _nobodys()
    with _at_once:
        try:
            _hasher.verify(stored or nobodys, password)
        except (VerificationError, InvalidHashError):
            return False
    return stored is not None


@cache
def _nobodys() -> str:
    """A hash that no password is known for."""
    return hashed(new_secret())
