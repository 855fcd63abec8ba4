"""How the API listens: uvicorn, with an end to connections that do nothing but stay."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# From the first byte of a request to the end of its headers, and how large those may be.
HEAD_SECONDS = 20.0
HEAD_BYTES = 64 << 10
# The longest that a reader may take nothing while there is something for it.
STALL_SECONDS = 60.0
# Clients and proxies keep an idle connection for 5 to 60 s. If the server closed it first, a request might be sent just
# then and be lost.
IDLE_SECONDS = 75


def server_config(app: Any, **options: Any) -> uvicorn.Config:
    """A configuration of uvicorn; `app` is an application, or names a factory of one."""
    return uvicorn.Config(
        app, http=Connection, timeout_keep_alive=IDLE_SECONDS, access_log=False, server_header=False, **options
    )


class Connection(HttpToolsProtocol):  # type: ignore[misc]
    """uvicorn bounds neither the time nor the size of headers, and waits for ever for a reader that has stopped."""

    _head_bytes = 0
    _head_deadline: asyncio.TimerHandle | None = None
    _stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        if self._head_deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._expect_head()
        super().data_received(data)
        if self._head_deadline is not None:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self.transport.abort()

    def on_headers_complete(self) -> None:
        self._end_head()
        super().on_headers_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stall is None:
            self._stall = self.loop.call_later(STALL_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._end_stall()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        # To close waits until all is sent, which may be never.
        self.loop.call_later(STALL_SECONDS, self.transport.abort)

    def connection_lost(self, error: Exception | None) -> None:
        self._end_head()
        self._end_stall()
        super().connection_lost(error)

    def _expect_head(self) -> None:
        self._head_bytes = 0
        self._head_deadline = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _end_head(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None

    def _end_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
