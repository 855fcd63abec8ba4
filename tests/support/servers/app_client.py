"""The app's test client, whose answers are awaited whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
from fastapi import FastAPI
from fastapi.testclient import TestClient

_IN_PARTS = "steerboard.in_parts"


class AppClient(TestClient):
    """Starlette's takes each answer in parts, for which two threads take turns eight times: most of the time of a
    request. Here they take turns once, except for what is read by `stream`."""

    def __init__(
        self,
        app: FastAPI,
        *,
        raise_server_exceptions: bool = True,
        client: tuple[str, int] = ("testclient", 50000),
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(app, raise_server_exceptions=raise_server_exceptions, client=client, headers=headers)
        whole = httpx2.ASGITransport(app, raise_app_exceptions=raise_server_exceptions, client=client)
        self._transport = _Transport(self, whole, self._transport)

    @contextmanager
    def stream(self, *args: Any, **options: Any) -> Iterator[httpx2.Response]:
        with super().stream(*args, **options, extensions={_IN_PARTS: True}) as answer:
            yield answer


class _Transport(httpx2.BaseTransport):
    def __init__(self, client: TestClient, whole: httpx2.ASGITransport, in_parts: httpx2.BaseTransport) -> None:
        self._client, self._whole, self._in_parts = client, whole, in_parts

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if _IN_PARTS in request.extensions:
            return self._in_parts.handle_request(request)
        request.read()
        with self._client._portal_factory() as portal:
            return portal.call(self._answer, request)

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        answer = await self._whole.handle_async_request(request)
        body = b"".join([part async for part in answer.aiter_raw()])
        return httpx2.Response(answer.status_code, headers=answer.headers, stream=httpx2.ByteStream(body))

    def close(self) -> None:
        self._in_parts.close()
