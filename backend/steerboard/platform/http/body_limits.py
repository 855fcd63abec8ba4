"""Bounds on request bodies: on their size, which grows once the caller is known, and on the time they take."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from steerboard.platform.http.errors import RequestTimeout, TooLarge, problem_response

# Before the caller is known: enough for nearly every request, and too little to keep anyone busy.
UNKNOWN_BYTES = 64 << 10
SIGN_IN_BYTES = 4 << 10
# The limit for known callers. A JSON body is held in memory whole; a recipe or a list of prompts is far below this.
JSON_BYTES = 16 << 20
# How long no byte may come, and how slowly they may come in all after the first minute.
IDLE_SECONDS = 30.0
GRACE_SECONDS = 60.0
BYTES_A_SECOND = 4 << 10

_SIGN_IN = re.compile(r"/api/v1/session|/sign-in/.*")
_KEY = "steerboard.body"


class Body:
    """The body of one request. `identify` is asked once before more than `limit` bytes are taken."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self._began = time.monotonic()
        self._taken = 0
        self._whole = False
        self._identify: Callable[[], Awaitable[None]] | None = None
        self._later_limit = 0
        # Called with the size of each piece before it is passed on; what it raises refuses the body.
        self.on_piece: Callable[[int], None] | None = None
        self.answering = False
        self.limit = SIGN_IN_BYTES if _SIGN_IN.fullmatch(scope["path"]) else UNKNOWN_BYTES
        headers = dict(scope["headers"])
        declared = headers.get(b"content-length", b"")
        self._chunked = b"transfer-encoding" in headers
        self.declared = int(declared) if declared.isdigit() and len(declared) < 19 else 0

    @staticmethod
    def of(scope: Scope) -> Body:
        body: Body = scope[_KEY]
        return body

    @property
    def being_read(self) -> bool:
        """Whether there is more of it to come: who receives a message then takes a piece of it from its reader."""
        return not self._whole and (self.declared > 0 or self._chunked)

    async def admit(self, limit: int, identify: Callable[[], Awaitable[None]], *, at_once: bool = False) -> None:
        """More than anyone may send is taken only after `identify`, up to `limit` bytes. Raises what `identify` does,
        and `TooLarge`; nothing has been read then of a body whose length is declared.

        `at_once`: also before a small body."""
        if self.limit < UNKNOWN_BYTES:
            return
        self._identify, self._later_limit = identify, limit
        if at_once or self.declared > self.limit:
            await self._grow()
        self._check(self.declared)

    async def receive(self) -> Message:
        """The next message, as ASGI has it. Raises `TooLarge`, `RequestTimeout`, and what `identify` does."""
        if self._whole or self.answering:
            return await self._receive()
        try:
            async with asyncio.timeout(self._patience()):
                message = await self._receive()
        except TimeoutError:
            if self.answering:
                return {"type": "http.disconnect"}
            raise RequestTimeout(
                f"the body arrived too slowly: {self._taken} bytes in {time.monotonic() - self._began:.0f} s",
                hint="Send it again over a faster connection.",
            ) from None
        self._whole = not message.get("more_body", False)
        piece = len(message.get("body", b""))
        if self.on_piece is not None:
            self.on_piece(piece)
        self._taken += piece
        if self._taken > self.limit and self._identify is not None:
            await self._grow()
        self._check(self._taken)
        return message

    async def _grow(self) -> None:
        assert self._identify is not None
        await self._identify()
        self.limit, self._identify = self._later_limit, None

    def _check(self, size: int) -> None:
        if size > self.limit:
            raise TooLarge(f"the body is larger than {_shown(self.limit)}")

    def _patience(self) -> float:
        allowed = GRACE_SECONDS + self._taken / BYTES_A_SECOND
        return min(IDLE_SECONDS, max(0.0, self._began + allowed - time.monotonic()))


class BodyLimit:
    """Gives every request its `Body`. What no route takes in stays below what anyone may send."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = scope[_KEY] = Body(scope, receive)

        async def noted(message: Message) -> None:
            body.answering = True
            await send(message)

        if body.limit == SIGN_IN_BYTES and body.declared > body.limit:
            refusal = problem_response(TooLarge(f"the body is larger than {_shown(body.limit)}"))
            await refusal(scope, receive, send)
            return
        await self._app(scope, body.receive, noted)


def _shown(size: int) -> str:
    return f"{size >> 20} MB" if size >= 1 << 20 else f"{size >> 10} KB"
