"""The CLI's way to the API: where it is, who we are, and errors that a person can read."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import orjson

from steerboard.cli.files import written
from steerboard.platform.security.safe_http import BadUrl, check_url
from steerboard.platform.settings import get_settings
from steerboard_contracts.errors import BadInput, ErrorLocation, SteerboardError

CLIENT_FILE = "client.json"
_ELSEWHERE = "Check STEERBOARD_URL, and any proxy in front of the server."


class ServerUnreachable(SteerboardError):
    """No server answers where we look for it."""

    code = "server_unreachable"
    title = "The server does not answer"


class ApiError(SteerboardError):
    """A problem document of the server, as it came."""

    def __init__(self, problem: dict[str, Any], status: int) -> None:
        places = [ErrorLocation.model_validate(place) for place in problem.get("errors", [])]
        super().__init__(
            problem.get("detail") or f"the server answered {status}",
            code=problem.get("code", f"http_{status}"),
            hint=problem.get("hint"),
            errors=places,
            extra=problem,
        )
        self.status = status
        self.title = problem.get("title", "The server refused")


def client_file(home: Path) -> Path:
    return home / CLIENT_FILE


def write_client_file(home: Path, url: str, token: str) -> None:
    """Only its owner can read it: it holds a token for everything."""
    path = client_file(home)
    temporary = path.with_name(f".{CLIENT_FILE}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(orjson.dumps({"url": url, "token": token}))
    temporary.replace(path)


def known_server(home: Path) -> dict[str, str]:
    """The `url` and `token` that `steerboard up` wrote; nothing where it never ran. Raises `ServerUnreachable`
    (`bad_client_file`)."""
    path = client_file(home)
    try:
        known = orjson.loads(path.read_bytes())
        if isinstance(known, dict) and all(isinstance(known.get(name), str) for name in ("url", "token")):
            return known
        why = "it is damaged"
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except orjson.JSONDecodeError:
        why = "it is damaged"
    except OSError as error:
        why = str(error.strerror)
    raise ServerUnreachable(
        f"{path}, which `steerboard up` writes with its address, cannot be used: {why}",
        code="bad_client_file",
        hint="Start `steerboard up` again, which rewrites it, or set STEERBOARD_URL and STEERBOARD_TOKEN.",
    )


def path_of(*parts: str) -> str:
    """`evaluations/NAME/report`: what a user typed stays one part, whatever is in it."""
    return "/".join(quote(part, safe="") for part in parts)


def address_of(home: Path) -> tuple[str, str]:
    """URL and token: from STEERBOARD_URL and STEERBOARD_TOKEN, else from the file that `steerboard up` wrote.

    Raises `ServerUnreachable` (`no_server`, `bad_client_file`) and `BadInput` (`bad_url`, `invalid_token`).
    """
    url, token = os.environ.get("STEERBOARD_URL"), os.environ.get("STEERBOARD_TOKEN")
    if not url or not token:
        known = known_server(home)
        url, token = url or known.get("url"), token or known.get("token")
    if not url or not token:
        raise _unknown_server(home)
    # Secrets of CI often end with a line break.
    token = token.strip()
    if not (token.isascii() and token.isprintable()):
        raise BadInput("STEERBOARD_TOKEN contains characters that are not valid in a token", code="invalid_token")
    return _checked_url(url), token


def url_of(home: Path) -> str:
    """The URL alone, determined in the same way, with the same errors."""
    url = os.environ.get("STEERBOARD_URL") or known_server(home).get("url")
    if not url:
        raise _unknown_server(home)
    return _checked_url(url)


def _checked_url(url: str) -> str:
    try:
        return check_url(url).rstrip("/")
    except BadUrl as error:
        raise BadInput(
            f"STEERBOARD_URL cannot be used: {error.detail}", code="bad_url", hint="Write http://HOST:PORT."
        ) from None


def _unknown_server(home: Path) -> ServerUnreachable:
    return ServerUnreachable(
        f"{home} does not name a running server",
        code="no_server",
        hint="Start one with `steerboard up`, or set STEERBOARD_URL and STEERBOARD_TOKEN.",
    )


class Client:
    """Requests to one project. Paths are relative to it (`runs/abc`), or absolute below `/api/v1`.

    Every method raises `ApiError` for a problem document and `ServerUnreachable` when nothing answers.
    """

    def __init__(self, project: str | None = None, *, home: Path | None = None, timeout: float = 60.0) -> None:
        self.url, token = address_of(home or get_settings().home)
        self.project = project or os.environ.get("STEERBOARD_PROJECT", "default")
        self.http = httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {token}"}, timeout=httpx.Timeout(timeout, connect=5.0)
        )

    def path(self, path: str) -> str:
        return path if path.startswith("/") else f"/api/v1/projects/{self.project}/{path}".rstrip("/")

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """An answer in JSON, or an empty one. A POST gets an `Idempotency-Key`, so the one retry after a broken
        connection starts nothing twice."""
        headers = dict(options.pop("headers", None) or {})
        if method == "POST":
            headers.setdefault("Idempotency-Key", uuid.uuid4().hex)
        try:
            response = self.http.request(method, self.path(path), headers=headers, **options)
        except httpx.RemoteProtocolError:
            response = self._again(method, path, headers, options)
        except httpx.TransportError as error:
            raise self._unreachable(error) from error
        _checked(response)
        if response.content and not response.headers.get("content-type", "").startswith("application/json"):
            raise ServerUnreachable(f"the server at {self.url} is not a Steerboard server", hint=_ELSEWHERE)
        return response

    def get(self, path: str, **params: Any) -> Any:
        given = {name: value for name, value in params.items() if value is not None}
        return self.request("GET", path, params=given).json()

    def post(self, path: str, body: Any = None, **options: Any) -> Any:
        """`body` is sent as JSON; `files=` and `data=` make a form instead."""
        if body is not None:
            options["json"] = body
        response = self.request("POST", path, **options)
        return response.json() if response.content else None

    def patch(self, path: str, body: Any) -> Any:
        return self.request("PATCH", path, json=body).json()

    def delete(self, path: str) -> Any:
        response = self.request("DELETE", path)
        return response.json() if response.content else None

    def pages(self, path: str, limit: int | None = None, **params: Any) -> Iterator[dict[str, Any]]:
        """Every item of a list, page by page, at most `limit`."""
        left = limit
        cursor = None
        while left is None or left > 0:
            page = self.get(path, cursor=cursor, limit=min(200, left or 200), **params)
            yield from page["items"][:left]
            left = None if left is None else left - len(page["items"])
            cursor = page["next"]
            if cursor is None:
                return

    def download(self, path: str, target: Path, **params: Any) -> int:
        """Stream an answer into `target`, which appears whole or not at all. Returns its bytes."""
        temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.partial")
        size = 0
        try:
            with written(target), self.http.stream("GET", self.path(path), params=params, timeout=None) as response:
                _checked(response)
                with temporary.open("wb") as file:
                    for chunk in response.iter_bytes(1 << 20):
                        size += file.write(chunk)
                temporary.replace(target)
        except httpx.TransportError as error:
            raise self._unreachable(error) from error
        finally:
            temporary.unlink(missing_ok=True)
        return size

    def events(self, after: int | None = None) -> Iterator[dict[str, Any]]:
        """The live stream: {id, type, created_at, payload} for ever, reconnecting when the server ends a stream."""
        last = after
        while True:
            headers = {} if last is None else {"Last-Event-ID": str(last)}
            try:
                with self.http.stream("GET", self.path("events"), headers=headers, timeout=60.0) as response:
                    _checked(response)
                    for line in response.iter_lines():
                        if line.startswith("data: "):
                            event = orjson.loads(line.removeprefix("data: "))
                            last = event["id"]
                            yield event
            except httpx.TransportError as error:
                raise self._unreachable(error) from error

    def _again(self, method: str, path: str, headers: dict[str, str], options: dict[str, Any]) -> httpx.Response:
        if method not in ("GET", "POST") or "files" in options or "content" in options:
            raise ServerUnreachable(f"the server at {self.url} closed the connection")
        try:
            return self.http.request(method, self.path(path), headers=headers, **options)
        except httpx.TransportError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> ServerUnreachable:
        return ServerUnreachable(
            f"the server at {self.url} does not answer: {error or type(error).__name__}",
            hint="Is `steerboard up` running? `steerboard doctor` shows what is wrong.",
        )


def _checked(response: httpx.Response) -> httpx.Response:
    """Raises `ApiError`, and `ServerUnreachable` for what no server of ours answers."""
    if response.is_redirect:
        where = response.headers.get("location", "nowhere")
        raise ServerUnreachable(f"the server at {response.url} redirects to {where}", hint=_ELSEWHERE)
    if not response.is_error:
        return response
    response.read()
    try:
        problem = response.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {"detail": f"the server at {response.url} answered {response.status_code}", "hint": _ELSEWHERE}
    raise ApiError(problem, response.status_code)


def print_error(error: SteerboardError) -> None:
    print(f"error: {error} [{error.code}]", file=sys.stderr)
