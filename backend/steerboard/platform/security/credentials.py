"""Secrets that are shown once and stored as hashes."""

from __future__ import annotations

import hashlib
import secrets

TOKEN_PREFIX = "sbt_"
SESSION_COOKIE = "steerboard_session"


def new_secret(prefix: str = "") -> str:
    """32 random bytes, url-safe."""
    return prefix + secrets.token_urlsafe(32)


def secret_hash(secret: str) -> str:
    """SHA-256 is enough for 256 random bits; passwords would need argon2."""
    return hashlib.sha256(secret.encode()).hexdigest()
