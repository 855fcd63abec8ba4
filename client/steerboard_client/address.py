"""The server's address and the caller: given, from the environment, or as the CLI signed in."""

from __future__ import annotations

import json
import os
from pathlib import Path

from steerboard_client.errors import BadInput, ServerUnreachable

_CLIENT_FILE = "client.json"


def home() -> Path:
    """The folder in which `steerboard up` keeps its address: `.steerboard` where it was started, or STEERBOARD_HOME."""
    return Path(os.environ.get("STEERBOARD_HOME") or ".steerboard")


def address_of(url: str | None, token: str | None) -> tuple[str, str]:
    """URL without a trailing slash, and token. Raises `ServerUnreachable` (`no_server`) and `BadInput` (`bad_url`,
    `invalid_token`)."""
    url = url or os.environ.get("STEERBOARD_URL")
    token = token or os.environ.get("STEERBOARD_TOKEN")
    if not url or not token:
        known = _known()
        # A token is for the server that it came with.
        if url is None or url.rstrip("/") == known.get("url", "").rstrip("/"):
            url, token = url or known.get("url"), token or known.get("token")
    if not url or not token:
        lacks = "no server is known" if not url else f"there is no token for {url}"
        raise ServerUnreachable(
            f"{lacks}.",
            code="no_server",
            hint="Give url and token, set STEERBOARD_URL and STEERBOARD_TOKEN, or start `steerboard up`.",
        )
    if not url.startswith(("http://", "https://")):
        raise BadInput(f"{url!r} is not the address of a server.", code="bad_url", hint="Write http://HOST:PORT.")
    token = token.strip()  # secrets of CI often end with a line break
    if not (token.isascii() and token.isprintable()):
        raise BadInput("the token contains characters that are not valid in a token", code="invalid_token")
    return url.rstrip("/"), token


def _known() -> dict[str, str]:
    path = home() / _CLIENT_FILE
    try:
        known = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ServerUnreachable(f"{path} cannot be read: {error}", code="bad_client_file") from None
    fields = known if isinstance(known, dict) else {}
    return {name: value for name, value in fields.items() if name in ("url", "token") and isinstance(value, str)}
