"""Secrets that must be read again, such as the key of an endpoint: sealed in the database, never there in clear.

What needs only to be recognised is hashed instead (`platform.security.credentials`).
"""

from __future__ import annotations

import base64
import os
import secrets
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from steerboard.platform.settings import Settings
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.files.disk import sync_folder

KEY_FILE = "secret.key"
_PURPOSE = b"steerboard sealed secrets 1"


class SecretUnreadable(SteerboardError):
    """It was sealed with another key than this process has."""

    code = "secret_unreadable"
    status = 409
    title = "A stored secret cannot be read"


class Secrets:
    """Seals with one key, and opens with that one and with older ones.

    The key is `STEERBOARD_SECRET_KEY`, and `STEERBOARD_SECRET_KEY_PREVIOUS` another one that opens; without the first
    they are the lines of a file of the home, which is made when it is first needed and read again when it changes, so
    that running processes follow a rotation. Every process that opens what another one sealed needs the same keys: on
    several machines, set the variables.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._known: tuple[object, list[str]] | None = None

    @property
    def from_file(self) -> bool:
        return not self._settings.secret_key.get_secret_value().strip()

    def known(self) -> list[str]:
        """Texts of the keys: the one that seals, then the older ones."""
        if not self.from_file:
            given = (self._settings.secret_key, self._settings.secret_key_previous)
            return [text for key in given if (text := key.get_secret_value().strip())]
        path = self._settings.home / KEY_FILE
        if not path.exists():
            _make_key_file(path, f"{new_key()}\n")
        status = path.stat()
        version = (status.st_ino, status.st_mtime_ns, status.st_size)
        if self._known is None or self._known[0] != version:
            self._known = (version, _lines(path))
        return self._known[1]

    def derived(self, purpose: str) -> bytes:
        """A key for something else than sealing, which is different after a rotation."""
        return _derived(self.known()[0], f"steerboard {purpose} 1".encode())

    def seal(self, text: str) -> str:
        """Encrypted and authenticated; another text every time."""
        return _cipher(self.known()[0]).encrypt(text.encode()).decode()

    def open(self, sealed: str) -> str:
        """What was sealed. Raises `SecretUnreadable`."""
        for key in self.known():
            with suppress(InvalidToken):
                return _cipher(key).decrypt(sealed.encode()).decode()
        raise SecretUnreadable(
            "the stored secret was sealed with a key that this server does not have",
            hint=f"STEERBOARD_SECRET_KEY, or the file {KEY_FILE} of the home, has changed: put the old one back, "
            "or enter the secret again.",
        )


def new_key() -> str:
    return secrets.token_urlsafe(32)


def write_key_file(home: Path, content: str) -> None:
    """Replace the key file, or make it: at every moment it is there whole, as it was or as it is now."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = _temporary(home, content)
    try:
        temporary.replace(home / KEY_FILE)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(home)


@lru_cache(maxsize=8)
def _cipher(key: str) -> Fernet:
    """The file's content and the variable are used alike, so that one can be moved into the other."""
    return Fernet(base64.urlsafe_b64encode(_derived(key, _PURPOSE)))


def _derived(key: str, purpose: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose).derive(key.encode())


def _make_key_file(path: Path, content: str) -> None:
    """It appears complete and once, even if others create one at the same moment."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = _temporary(path.parent, content)
    try:
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def _temporary(home: Path, content: str) -> Path:
    path = home / f".{KEY_FILE}.{secrets.token_hex(8)}"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.fchmod(descriptor, 0o600)  # also under a umask that would take it away from its owner
    with os.fdopen(descriptor, "w") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return path


def _lines(path: Path) -> list[str]:
    lines = [line.strip() for line in path.read_text().splitlines() if line.strip()]
    if not lines:
        raise SecretUnreadable(f"{path} is empty", hint="Restore the previous key, or remove the empty file.")
    return lines
