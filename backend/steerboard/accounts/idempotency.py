"""`Idempotency-Key`: a retried POST gets the first answer and starts nothing twice.

The answer is kept in the transaction of the change itself, so there is no moment in which the change is there and
the answer is not. Duplicates that arrive together wait for the first at an advisory lock. Failures are not kept: they
changed nothing, and the retry may succeed.
"""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
from fastapi import Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel
from sqlalchemy import func, select
from sqlalchemy.orm import Session
from starlette.datastructures import UploadFile

from steerboard.accounts.tables import IdempotencyKey
from steerboard.platform.http.errors import Conflict, InvalidRequest
from steerboard.platform.security.secrets import Secrets

KEY_HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotency-Replayed"
_MAX_KEY = 200
_CHUNK = 1 << 20


class Replay(Exception):
    """The answer is already known; this is not an error."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(status)
        self.response = JSONResponse(body, status_code=status, headers={REPLAYED_HEADER: "true"})


class Key(BaseModel):
    """A key that no one has used yet. Its duplicates wait until the request ends."""

    actor: str
    path: str
    key: str
    request_hash: str

    def keep(self, session: Session, secrets: Secrets, status: int, body: str) -> None:
        """The answer, in the transaction of its change."""
        row = IdempotencyKey(**self.model_dump(), status=status, body={"sealed": secrets.seal(body)})
        session.add(row)
        session.flush()


async def note_request(request: Request) -> None:
    """Called when the body is here and the caller is not yet known. Raises `InvalidRequest`."""
    key = request.headers[KEY_HEADER]
    if not 1 <= len(key) <= _MAX_KEY:
        raise InvalidRequest(f"the header {KEY_HEADER} must have 1 to {_MAX_KEY} characters")
    request.state.request_hash = await _request_hash(request)


def begin(request: Request, session: Session, identity: str) -> None:
    """Called when the caller is known. Raises `Replay`, `Conflict` when the key came with another body, and
    `SecretUnreadable`."""
    request_hash = getattr(request.state, "request_hash", None)
    if request_hash is None:
        return
    key, path = request.headers[KEY_HEADER], request.url.path
    lock = hashlib.sha256(f"{identity}\x00{path}\x00{key}".encode()).digest()
    session.execute(select(func.pg_advisory_xact_lock(int.from_bytes(lock[:8], "big", signed=True))))
    known = session.scalar(
        select(IdempotencyKey).where(
            IdempotencyKey.actor == identity, IdempotencyKey.path == path, IdempotencyKey.key == key
        )
    )
    if known is None:
        request.state.idempotency = Key(actor=identity, path=path, key=key, request_hash=request_hash)
        return
    if known.request_hash != request_hash:
        raise Conflict(
            f"the {KEY_HEADER} {key!r} was already used for a different request",
            code="idempotency_key_reused",
            hint="Use a new key for a new request.",
        )
    body = known.body or {}
    # Answers hold what is shown once, so they are kept sealed; those of an older version are not sealed.
    sealed: str | None = body.get("sealed")
    secrets: Secrets = request.app.state.secrets
    raise Replay(known.status or 200, orjson.loads(secrets.open(sealed)) if sealed else body.get("json"))


def keep(request: Request, response: Response) -> None:
    """Called with the answer, before the commit."""
    key = hand_over(request)
    if key is None or response.status_code >= 300:
        return
    session: Session = request.state.session
    key.keep(session, request.app.state.secrets, response.status_code, bytes(response.body or b"null").decode())


def hand_over(request: Request) -> Key | None:
    """The key of a request whose change, and so the answer to keep, is made in another transaction."""
    key: Key | None = getattr(request.state, "idempotency", None)
    request.state.idempotency = None
    return key


async def _request_hash(request: Request) -> str:
    """SHA-256 of path, query and body. Of a form it is its fields and files, because its boundary is random."""
    digest = hashlib.sha256(f"{request.url.path}?{request.url.query}\x00".encode())
    content_type = request.headers.get("content-type", "")
    if content_type.startswith("multipart/form-data"):
        form = await request.form()
        for name, value in sorted(form.multi_items(), key=lambda item: item[0]):
            digest.update(f"{name}\x00".encode(errors="surrogatepass"))
            if isinstance(value, UploadFile):
                digest.update(f"{value.filename}\x00".encode(errors="surrogatepass"))
                while chunk := await value.read(_CHUNK):
                    digest.update(chunk)
                await value.seek(0)
            else:
                digest.update(value.encode(errors="surrogatepass"))
    elif content_type.startswith("application/json") or not content_type:
        digest.update(await request.body())
    else:
        # A raw upload goes straight to its endpoint; its length and name have to do.
        digest.update(request.headers.get("content-length", "").encode())
    return digest.hexdigest()
