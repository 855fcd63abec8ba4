"""`Idempotency-Key`: a retried POST gets the first answer and starts nothing twice.

The answer is kept in the transaction of the change itself, so there is no moment in which the change is there and
the answer is not. Duplicates that arrive together wait for the first at an advisory lock. Failures are not kept: they
changed nothing, and the retry may succeed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Coroutine
from typing import Any

import orjson
from fastapi import Request
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from sqlalchemy import func, select
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from steerboard.accounts.tables import IdempotencyKey
from steerboard.platform.errors import Conflict, InvalidRequest
from steerboard.platform.secrets import Secrets

KEY_HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotency-Replayed"
# Of a form; whoever parses it first decides for all.
MAX_FILES, MAX_FIELDS = 1, 20
_MAX_KEY = 200
_CHUNK = 1 << 20


class Replay(Exception):
    """Not an error: the answer is already known."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(status)
        self.response = JSONResponse(body, status_code=status, headers={REPLAYED_HEADER: "true"})


class IdempotentRoute(APIRoute):
    """Reads the body's hash before the endpoint and keeps its answer after it, before the commit."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        inner = super().get_route_handler()

        async def handle(request: Request) -> Response:
            key = request.headers.get(KEY_HEADER)
            if request.method != "POST" or key is None:
                return await inner(request)
            if not 1 <= len(key) <= _MAX_KEY:
                raise InvalidRequest(f"the header {KEY_HEADER} must have 1 to {_MAX_KEY} characters")
            request.state.request_hash = await _request_hash(request)
            response = await inner(request)
            await run_in_threadpool(_keep, request, response)
            return response

        return handle


class UnkeptRoute(APIRoute):
    """A POST that asks somebody else's server, and may be asked again: its answer is not kept."""


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
        request.state.idempotency = IdempotencyKey(actor=identity, path=path, key=key, request_hash=request_hash)
        return
    if known.request_hash != request_hash:
        raise Conflict(
            f"the {KEY_HEADER} {key!r} was used before with another request",
            code="idempotency_key_reused",
            hint="Use a new key for a new request.",
        )
    body = known.body or {}
    # Answers hold what is shown once, so they are kept sealed; those of an older version lie open.
    sealed: str | None = body.get("sealed")
    secrets: Secrets = request.app.state.secrets
    raise Replay(known.status or 200, orjson.loads(secrets.open(sealed)) if sealed else body.get("json"))


def _keep(request: Request, response: Response) -> None:
    row: IdempotencyKey | None = getattr(request.state, "idempotency", None)
    if row is None or response.status_code >= 300:
        return
    row.status = response.status_code
    secrets: Secrets = request.app.state.secrets
    row.body = {"sealed": secrets.seal(bytes(response.body or b"null").decode())}
    session: Session = request.state.session
    session.add(row)
    session.flush()


async def _request_hash(request: Request) -> str:
    """SHA-256 of path, query and body. Of a form it is its fields and files, for its boundary is random."""
    digest = hashlib.sha256(f"{request.url.path}?{request.url.query}\x00".encode())
    content_type = request.headers.get("content-type", "")
    if content_type.startswith("multipart/form-data"):
        # Imported here, for it imports this module.
        from steerboard.platform.access import refuse_strangers

        # A form may be gigabytes, and parsing it puts them on the disk.
        await refuse_strangers(request)
        form = await request.form(max_files=MAX_FILES, max_fields=MAX_FIELDS)
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
