"""Models on a worker's own disk."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from pathlib import Path

from steerboard.platform.storage.artifacts import ArtifactStore, Manifest, checked_hash
from steerboard.platform.storage.local_cache import LocalCache


def materialise(store: ArtifactStore, manifest: Manifest, cache: LocalCache, holds: ExitStack) -> Path:
    """A read-only folder with a model's files, shared by all workers of the home; it stays until `holds` is closed.

    A damaged copy is fetched again. Raises `CorruptArtifact` when the store's own copy is damaged, `StoreUnavailable`,
    `NoSpaceLeft`.
    """
    return cache.take(
        "models",
        checked_hash(manifest.hash),
        size=manifest.size,
        fill=lambda folder: store.fetch_into(manifest, folder),
        intact=lambda folder: is_intact(folder, manifest),
        holds=holds,
    )


def is_intact(folder: Path, manifest: Manifest) -> bool:
    """Whether a folder has exactly the manifest's files with their hashes."""
    present = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}
    if present != {file["path"] for file in manifest.files}:
        return False
    for file in manifest.files:
        path = folder / file["path"]
        if path.is_symlink() or path.stat().st_size != file["size"]:
            return False
        with path.open("rb") as content:
            if hashlib.file_digest(content, "sha256").hexdigest() != file["sha256"]:
                return False
    return True
