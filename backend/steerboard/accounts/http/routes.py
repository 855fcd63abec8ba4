"""What every route that takes a body does first: take it in, before anything asks the database.

The caller of a large body is identified in a transaction of its own, which has ended when the body is waited for. So a
client that is slow holds a connection of the network, and no turn, thread or connection of the database.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from steerboard.accounts import idempotency
from steerboard.accounts.access import admit
from steerboard.platform.http.body_limits import JSON_BYTES, UNKNOWN_BYTES, Body
from steerboard.platform.http.errors import TooLarge
from steerboard.platform.storage.disk import disk_of
from steerboard_contracts.files.disk import FULL

# The most files and fields of an uploaded form.
MAX_FILES, MAX_FIELDS = 1, 20
_FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")
# A parser holds the interpreter's lock to its end: 16 MB of empty lists take it six seconds, 16 MB of text 30 ms.
MAX_VALUES = 50_000
# Commas and brackets are of texts too, but no text has so many.
_MAX_SIGNS = 20 * MAX_VALUES
# Also one that never ends, so that no place is looked at twice.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)


class BoundedRoute(APIRoute):
    """A route with a body, as JSON or, where its description has one, as a form."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        inner = super().get_route_handler()
        if (self.methods or set()) <= {"GET", "HEAD"}:
            return inner
        content = ((self.openapi_extra or {}).get("requestBody") or {}).get("content", {})
        takes_form = _FORMS[0] in content

        async def handle(request: Request) -> Response:
            bounded = BoundedRequest(request.scope, request.receive)
            try:
                await _take_in(bounded, takes_form)
                return await self.answer(bounded, inner)
            finally:
                await bounded.close()

        return handle

    async def answer(self, request: Request, inner: Callable[[Request], Coroutine[Any, Any, Response]]) -> Response:
        """Answers once the body is here."""
        return await inner(request)


class IdempotentRoute(BoundedRoute):
    """Reads the body's hash before the endpoint and keeps its answer after it, before the commit."""

    async def answer(self, request: Request, inner: Callable[[Request], Coroutine[Any, Any, Response]]) -> Response:
        if request.method != "POST" or idempotency.KEY_HEADER not in request.headers:
            return await inner(request)
        await idempotency.note_request(request)
        response = await inner(request)
        await run_in_threadpool(idempotency.keep, request, response)
        return response


class UnkeptRoute(BoundedRoute):
    """A POST that asks someone else's server, and may be asked again: its answer is not kept."""


class Router(APIRouter):
    """A router of the API: bodies are bounded, and a POST takes an `Idempotency-Key`, unless declared otherwise."""

    def __init__(self, *, route_class: type[BoundedRoute] = IdempotentRoute, **options: Any) -> None:
        super().__init__(route_class=route_class, **options)


class BoundedRequest(Request):
    """Parses what is large in a thread."""

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            body = await self.body()
            small = len(body) <= UNKNOWN_BYTES
            self._json = json.loads(body) if small else await run_in_threadpool(json.loads, body)
        return self._json


async def _take_in(request: BoundedRequest, takes_form: bool) -> None:
    """Raises `TooLarge`, `RequestTimeout`, `NoSpaceLeft`, and like `access.admit`."""
    body = Body.of(request.scope)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if takes_form and kind in _FORMS:
            most = request.app.state.settings.max_upload_mb << 20
            # Small forms are admitted as well: parsing puts their files on the disk.
            await body.admit(most, partial(admit, request, "write"), at_once=True)
            disk = disk_of(Path(tempfile.gettempdir()), "the upload")
            disk.need(body.declared)
            body.on_piece = disk.need
            await request.form(max_files=MAX_FILES, max_fields=MAX_FIELDS)
            return
        await body.admit(JSON_BYTES, partial(admit, request))
        content = await request.body()
    except ClientDisconnect:
        raise HTTPException(400, "The client disconnected before the request body arrived.") from None
    except OSError as error:
        if error.errno in FULL:
            raise disk_of(Path(tempfile.gettempdir()), "the upload").full() from error
        raise
    if len(content) > UNKNOWN_BYTES:
        await run_in_threadpool(_refuse_many_values, content)


def _refuse_many_values(content: bytes) -> None:
    signs = _signs(content)
    if signs > _MAX_SIGNS or (signs > MAX_VALUES and _signs(_STRING.sub(b"", content)) > MAX_VALUES):
        raise TooLarge(
            f"the body has more than {MAX_VALUES:,} values", hint="Upload it as a file, or send it in several requests."
        )


def _signs(content: bytes) -> int:
    """A count that is at least the number of values minus one."""
    return sum(content.count(sign) for sign in (b",", b"[", b"{"))
