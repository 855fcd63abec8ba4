"""One file of an artifact as an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi.responses import StreamingResponse

from steerboard.platform.storage.artifacts import ArtifactStore


def stored_file(store: ArtifactStore, file: Mapping[str, Any]) -> StreamingResponse:
    """`file`: its entry of a manifest. Its SHA-256 is the ETag; a damaged blob ends the answer early."""
    store.open(file["sha256"]).close()  # a missing blob is an error document, not a broken download

    def content() -> Iterator[bytes]:
        yield from store.read(file["sha256"])

    headers = {"Content-Length": str(file["size"]), "ETag": f'"{file["sha256"]}"'}
    return StreamingResponse(content(), media_type="application/octet-stream", headers=headers)
