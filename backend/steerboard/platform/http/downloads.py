"""Answers that are files made for one request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import IO, BinaryIO
from urllib.parse import quote

from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from steerboard.platform.storage import scratch

_CHUNK = 1 << 18


class Download(StreamingResponse):
    """A file without a name on the disk: it is gone with its reader, or with this process.

    Always whole. Another request would make another file, so there are no ranges to take up again."""

    def __init__(self, file: IO[bytes], name: str, media_type: str, status_code: int = 200) -> None:
        self._file = file
        size = file.seek(0, 2)
        file.seek(0)
        shown = f'filename="{name}"' if quote(name) == name else f"filename*=utf-8''{quote(name)}"
        headers = {
            "Content-Length": str(size),
            "Content-Disposition": f"attachment; {shown}",
            "Accept-Ranges": "none",
        }
        super().__init__(_chunks(file), status_code, headers=headers, media_type=media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._file.close()


def made(write: Callable[[BinaryIO], object], name: str, media_type: str) -> Download:
    """What `write` writes, whole before the answer starts: a failure is still an error document, and no connection of
    the database waits for a slow reader."""
    file = scratch.file("the export")
    try:
        write(file)
        return Download(file, name, media_type)
    except BaseException:
        file.close()
        raise


async def _chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    while chunk := await run_in_threadpool(file.read, _CHUNK):
        yield chunk
