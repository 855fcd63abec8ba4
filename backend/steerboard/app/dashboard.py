"""The dashboard: the web build, served from the API's own address, so that its cookie is first-party."""

from __future__ import annotations

import mimetypes
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse, HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from steerboard.openai_api.paths import is_openai_path
from steerboard.platform import package_files

BUILD = package_files.folder("dashboard")
# Names of assets carry a hash of their content, so they never change.
_FOREVER = "public, max-age=31536000, immutable"
_NOT_BUILT = """<!doctype html>
<html lang="en"><title>Steerboard</title>
<h1>The dashboard is not built</h1>
<p>Run <code>make web</code> in the checkout and load this page again.
The API works without it: <a href="/docs">its documentation</a>.</p>
</html>"""


class Assets:
    """Answers for the build's assets before any route is looked at: a page asks for several at once, and to compare an
    address with all routes takes longer than to send a file."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asset = scope["type"] == "http" and scope["method"] in ("GET", "HEAD") and scope["path"].startswith("/assets/")
        await (_page(Request(scope)) if asset else self._app)(scope, receive, send)


def install(app: FastAPI) -> None:
    """Answer what no route of the API does."""
    not_found = app.router.default

    async def default(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD") and not _is_api(scope["path"]):
            await _page(Request(scope))(scope, receive, send)
        else:
            await not_found(scope, receive, send)

    app.router.default = default


def _is_api(path: str) -> bool:
    return path == "/api" or path.startswith("/api/") or is_openai_path(path)


def _page(request: Request) -> Response:
    """A file of the build, or the page itself: it finds out by its address what to show."""
    path = request.url.path.lstrip("/")
    try:
        file = (BUILD / path).resolve()
        built = path != "" and file.is_relative_to(BUILD) and file.is_file()
    except (OSError, ValueError):
        # Too long for a name, or with a NUL.
        return Response("There is no such page.", 404, media_type="text/plain")
    if built:
        return _asset(file, path, request)
    if path.startswith("assets/"):
        # A file of a build that is gone; the page itself would not be JavaScript.
        return Response("The dashboard was updated; reload the page.", 404, media_type="text/plain")
    index = BUILD / "index.html"
    if not index.is_file():
        return HTMLResponse(_NOT_BUILT, status_code=503)
    return FileResponse(index, headers={"Cache-Control": "no-cache"})


def _asset(file: Path, path: str, request: Request) -> Response:
    headers = {"Cache-Control": _FOREVER if path.startswith("assets/") else "no-cache", "Vary": "Accept-Encoding"}
    media_type = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    packed = file.with_name(file.name + ".gz")
    if packed.is_file() and "gzip" in request.headers.get("accept-encoding", ""):
        return FileResponse(packed, media_type=media_type, headers={**headers, "Content-Encoding": "gzip"})
    return FileResponse(file, media_type=media_type, headers=headers)
