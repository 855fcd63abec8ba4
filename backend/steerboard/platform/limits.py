"""Bounds on request bodies, before anything reads them."""

from __future__ import annotations

import re

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from steerboard.platform.errors import TooLarge, problem_response

# A JSON body is held in memory whole; a recipe or a list of prompts is far below this.
JSON_BYTES = 16 << 20
_UPLOAD_TYPE = "multipart/form-data"
# Only these stream what they get; every other endpoint has its whole body in memory before it knows the caller.
_UPLOAD_PATHS = re.compile(
    r"/api/v1/projects/[^/]+/"
    r"(imports|datasets/import|datasets/[^/]+/rewards|prompt-sets|evaluations/[^/]+/(answers|judgments))"
)


class BodyLimit:
    """Uploads (forms, to the endpoints that stream them) may be large, every other body must be small."""

    def __init__(self, app: ASGIApp, *, upload_bytes: int) -> None:
        self._app = app
        self._upload_bytes = upload_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        is_form = headers.get(b"content-type", b"").decode("latin-1").startswith(_UPLOAD_TYPE)
        upload = is_form and _UPLOAD_PATHS.fullmatch(scope["path"]) is not None
        limit = self._upload_bytes if upload else JSON_BYTES
        detail = f"the body is larger than {limit >> 20} MB"
        declared = headers.get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > limit:
            await problem_response(TooLarge(detail))(scope, receive, send)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                # Of all exceptions, FastAPI lets only its own through while it reads a body.
                raise HTTPException(413, detail)
            return message

        await self._app(scope, counted, send)
