"""The dashboard: the web build, served from the API's own address, so that its cookie is first-party."""

from __future__ import annotations

import mimetypes
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse, HTMLResponse

from steerboard.platform.errors import NotFound

router = APIRouter(include_in_schema=False)

BUILD = Path(__file__).resolve().parents[3] / "frontend" / "dist"
# Names of assets carry a hash of their content, so they never change.
_FOREVER = "public, max-age=31536000, immutable"
_NOT_BUILT = """<!doctype html>
<html lang="en"><title>Steerboard</title>
<h1>The dashboard is not built</h1>
<p>Run <code>make web</code> in the checkout and load this page again.
The API works without it: <a href="/docs">its documentation</a>.</p>
</html>"""


@router.get("/{path:path}")
def page(path: str, request: Request) -> Response:
    """A file of the build, or the page itself: it finds out by its address what to show."""
    if path == "api" or path.startswith("api/"):
        raise NotFound(f"there is nothing at /{path}")
    file = (BUILD / path).resolve()
    if path and file.is_relative_to(BUILD) and file.is_file():
        return _asset(file, path, request)
    if path.startswith("assets/"):
        raise NotFound(f"there is nothing at /{path}", hint="The dashboard was updated; reload the page.")
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
