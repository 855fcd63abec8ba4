"""What has to be true before a process of a production server starts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from steerboard.platform.settings import Settings
from steerboard_contracts.errors import ErrorLocation, SteerboardError

SECRET_CHARACTERS = 32
_DISTINCT_CHARACTERS = 10
_NEEDED = ("secret_key", "database_url", "redis_url", "artifact_url", "public_url")
# Passwords and keys of images, tutorials and our own example file; compared in lower case and without punctuation.
_KNOWN = frozenset(
    [
        "admin",
        "changeit",
        "changeme",
        "changethis",
        "default",
        "example",
        "guest",
        "letmein",
        "masterkey",
        "minioadmin",
        "minio123",
        "mysecretpassword",
        "password",
        "passwd",
        "postgres",
        "postgrespassword",
        "qwerty",
        "redis",
        "replaceme",
        "root",
        "secret",
        "secretkey",
        "secretpassword",
        "steerboard",
        "supersecret",
        "test",
        "todo",
        "user",
        "valkey",
        "yourpassword",
        "yoursecretkey",
        "1234",
        "123456",
        "12345678",
    ]
)
_EXAMPLE = ("changeme", "replaceme", "changethis", "yoursecret", "examplekey")
_LOCAL = ("localhost", "127.0.0.1", "::1")
_GENERATE = "Generate one: python3 -c 'import secrets; print(secrets.token_urlsafe(48))'"


class MissingSetting(SteerboardError):
    """Production needs a setting that is not there."""

    code = "missing_setting"
    title = "A setting is missing"


class UnsafeSetting(SteerboardError):
    """Production does not start with a setting that anyone could guess or read on the way."""

    code = "unsafe_setting"
    title = "A setting is not safe"


def check(settings: Settings) -> None:
    """Checks nothing in development. Raises `MissingSetting` and `UnsafeSetting`, which name every setting at fault and
    never its value."""
    if settings.environment != "production":
        return
    missing = [name for name in _NEEDED if not _is_given(settings, name)]
    if missing:
        raise MissingSetting(
            "STEERBOARD_ENVIRONMENT=production needs settings that are not set.",
            errors=[ErrorLocation(location=_variable(name), message="is not set") for name in missing],
            hint="docs/deploy.md describes each of them.",
        )
    faults = list(_faults(settings))
    if faults:
        raise UnsafeSetting("Some settings are not safe on a server.", errors=faults, hint=_GENERATE)


def _is_given(settings: Settings, name: str) -> bool:
    if name == "secret_key":
        return bool(settings.secret_key.get_secret_value().strip())
    return settings.was_given(name)


def _faults(settings: Settings) -> Iterator[ErrorLocation]:
    key = settings.secret_key.get_secret_value().strip()
    if is_guessable(key) or len(key) < SECRET_CHARACTERS or len(set(key)) < _DISTINCT_CHARACTERS:
        yield _fault("secret_key", f"is not {SECRET_CHARACTERS} or more random characters")
    token = settings.metrics_token.get_secret_value()
    if token and (is_guessable(token) or len(token) < 16):
        yield _fault("metrics_token", "is not 16 or more random characters")
    for name, schemes in (("database_url", ("postgresql",)), ("redis_url", ("redis", "rediss", "unix"))):
        parts = _split(getattr(settings, name))
        if parts.scheme.partition("+")[0] not in schemes:
            yield _fault(name, f"is not a URL that starts with {' or '.join(f'{scheme}://' for scheme in schemes)}")
        elif any(map(is_guessable, _passwords(parts))):
            yield _fault(name, "has the password of an example or default")
    for variable in ("PGPASSWORD", "AWS_SECRET_ACCESS_KEY"):
        if (value := os.environ.get(variable)) and is_guessable(value):
            yield ErrorLocation(location=variable, message="is that of an example or default")
    public = _split(settings.public_url)
    if public.hostname is None or (public.scheme != "https" and public.hostname not in _LOCAL):
        yield _fault("public_url", "is not an https:// address; browser sessions would be sent unencrypted")


def _split(url: str) -> SplitResult:
    """The parts of a URL; empty ones where it cannot be split."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def _passwords(parts: SplitResult) -> list[str]:
    """Both clients also take one from the query."""
    before_host = [] if parts.password is None else [unquote(parts.password)]
    return [*before_host, *parse_qs(parts.query, keep_blank_values=True).get("password", [])]


def is_guessable(secret: str) -> bool:
    """Whether it is empty, a known default, or a placeholder of an example."""
    plain = "".join(character for character in secret.lower() if character.isalnum())
    return not plain or plain in _KNOWN or plain.startswith(_EXAMPLE)


def _fault(name: str, message: str) -> ErrorLocation:
    return ErrorLocation(location=_variable(name), message=message)


def _variable(name: str) -> str:
    return f"STEERBOARD_{name.upper()}"
