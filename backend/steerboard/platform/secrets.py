"""Secrets that must be read again, such as the key of an endpoint: sealed in the database, never there in clear.

What needs only to be recognised is hashed instead (`platform.credentials`).
"""

from __future__ import annotations

import base64
import os
import secrets
from contextlib import suppress
from functools import cached_property
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from steerboard.platform.settings import Settings
from steerboard_contracts.errors import SteerboardError

KEY_FILE = "secret.key"
_PURPOSE = b"steerboard sealed secrets 1"


class SecretUnreadable(SteerboardError):
    """It was sealed with another key than this process has."""

    code = "secret_unreadable"
    status = 409
    title = "A stored secret cannot be read"


class Secrets:
    """The key is `STEERBOARD_SECRET_KEY`, or else a random file of the home, made when it is first needed.

    Every process that opens what another one sealed needs the same key: on several machines, set the variable.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def seal(self, text: str) -> str:
        """Encrypted and authenticated; another text every time."""
        return self._cipher.encrypt(text.encode()).decode()

    def open(self, sealed: str) -> str:
        """What was sealed. Raises `SecretUnreadable`."""
        try:
            return self._cipher.decrypt(sealed.encode()).decode()
        except InvalidToken:
            raise SecretUnreadable(
                "the stored secret was sealed with another key than this server has",
                hint=f"STEERBOARD_SECRET_KEY, or the file {KEY_FILE} of the home, has changed: put the old one back, "
                "or enter the secret again.",
            ) from None

    @cached_property
    def _cipher(self) -> Fernet:
        text = self._settings.secret_key.get_secret_value().strip() or _key_of(self._settings.home)
        # The file's content and the variable are used alike, so that one can be moved into the other.
        derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE).derive(text.encode())
        return Fernet(base64.urlsafe_b64encode(derived))


def _key_of(home: Path) -> str:
    """The text of the key file, which appears complete and once, whoever else makes one at the same moment."""
    path = home / KEY_FILE
    if not path.exists():
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = home / f".{KEY_FILE}.{secrets.token_hex(8)}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w") as file:
                file.write(secrets.token_urlsafe(32) + "\n")
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        folder = os.open(home, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    text = path.read_text().strip()
    if not text:
        raise SecretUnreadable(f"{path} is empty", hint="Put back the key that was there, or remove the empty file.")
    return text
