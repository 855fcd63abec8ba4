"""Requests to one project of one server."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx

from steerboard_client._base import Schema
from steerboard_client.wire import PASSING, TRIES, check, path_of, pause, unreachable

S = TypeVar("S", bound=Schema)


class Connection:
    """Paths are relative to the project (`runs/abc`), or absolute (`/api/v1/session`).

    A request is tried again after a broken connection and while the server restarts; a POST carries an idempotency key
    and starts nothing twice. Every method raises `ApiError` and `ServerUnreachable`.
    """

    def __init__(self, url: str, token: str, project: str, timeout: float) -> None:
        self.url = url
        self.project = project
        self._http = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(timeout, connect=10.0),
        )

    def close(self) -> None:
        self._http.close()

    def path(self, path: str) -> str:
        return path if path.startswith("/") else f"/api/v1/projects/{path_of(self.project)}/{path}".rstrip("/")

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = dict(options.pop("headers", None) or {})
        broken = False
        if method == "POST":
            headers.setdefault("Idempotency-Key", uuid.uuid4().hex)
        for attempt in range(TRIES):
            last = attempt == TRIES - 1
            for _, file, *_ in (options.get("files") or {}).values():
                file.seek(0)
            try:
                response = self._http.request(method, self.path(path), headers=headers, **options)
            except httpx.TransportError as error:
                if last:
                    raise unreachable(self.url, error) from error
                broken = True
                time.sleep(pause(attempt))
                continue
            if method == "DELETE" and broken and response.status_code == 404:
                return response  # the request whose answer was lost has deleted it
            if response.status_code not in PASSING or last:
                return check(response)
            time.sleep(pause(attempt, response))
        raise AssertionError("the last try returns or raises")

    def get(self, path: str, **params: Any) -> Any:
        given = {name: value for name, value in params.items() if value is not None}
        response = self.request("GET", path, params=given)
        return response.json()

    def post(self, path: str, body: Any = None, **options: Any) -> Any:
        response = self.request("POST", path, **({"json": body} if body is not None else {}), **options)
        return response.json() if response.content else None

    def load(self, schema: type[S], path: str, **params: Any) -> S:
        return schema.model_validate(self.get(path, **params))

    def items(self, path: str, limit: int | None = None, **params: Any) -> Iterator[Any]:
        """Every item of a list, page by page, at most `limit`."""
        left = limit
        cursor = None
        while left is None or left > 0:
            page = self.get(path, cursor=cursor, limit=min(200, left or 200), **params)
            for item in page["items"][:left]:
                yield item
            left = None if left is None else left - len(page["items"])
            cursor = page.get("next")
            if cursor is None:
                return

    def download(self, path: str, target: Path, **params: Any) -> None:
        """Streams an answer into `target`, which appears whole or not at all."""
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.{uuid.uuid4().hex}.partial")
        try:
            for attempt in range(TRIES):
                try:
                    self._stream_to(partial, path, params)
                    partial.replace(target)
                    return
                except httpx.TransportError as error:
                    if attempt == TRIES - 1:
                        raise unreachable(self.url, error) from error
                    time.sleep(pause(attempt))
        finally:
            partial.unlink(missing_ok=True)

    def _stream_to(self, target: Path, path: str, params: dict[str, Any]) -> None:
        with self._http.stream("GET", self.path(path), params=params, timeout=None) as response:
            if response.is_error or response.is_redirect:
                response.read()
            check(response)
            with target.open("wb") as file:
                for chunk in response.iter_bytes(1 << 20):
                    file.write(chunk)
