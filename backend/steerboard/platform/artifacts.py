"""The artifact store: blobs by their SHA-256, written once under a temporary name and then renamed.

A folder is stored as its files' blobs plus a manifest; the manifest's hash names the folder's content.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

import fsspec

from steerboard_contracts.errors import SteerboardError

_CHUNK = 1 << 20


class CorruptArtifact(SteerboardError):
    """A file of the store is missing or its content does not match its hash."""

    code = "corrupt_artifact"
    title = "A stored file is damaged"


@dataclass(frozen=True)
class Manifest:
    """`files`: [{path, sha256, size}] sorted by path; `hash`: SHA-256 of their canonical JSON."""

    hash: str
    size: int
    files: list[dict[str, Any]]

    @classmethod
    def of(cls, files: list[dict[str, Any]]) -> Manifest:
        ordered = sorted(files, key=lambda file: file["path"])
        text = json.dumps(ordered, sort_keys=True, separators=(",", ":"))
        return cls(hashlib.sha256(text.encode()).hexdigest(), sum(f["size"] for f in ordered), ordered)


class ArtifactStore:
    """Files by content below one fsspec URL (`file:///...` by default)."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._files, self._root = fsspec.core.url_to_fs(url)
        self._local = self._files.protocol in ("file", ("file", "local"))

    def put_folder(self, folder: Path) -> Manifest:
        """Store every regular file below `folder`. Links and special files are refused."""
        files = []
        for path in sorted(folder.rglob("*")):
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise SteerboardError(f"{path.name} is not a plain file", code="unsafe_file", hint="Store plain files.")
            if path.is_file():
                sha256, size = self._put_file(path)
                files.append({"path": path.relative_to(folder).as_posix(), "sha256": sha256, "size": size})
        return Manifest.of(files)

    def fetch(self, manifest: Manifest, dest: Path) -> None:
        """Make `dest` a folder of exactly the manifest's files, each verified. `dest` appears whole or not at all."""
        temporary = dest.with_name(f".{dest.name}.{uuid.uuid4().hex}.partial")
        try:
            for file in manifest.files:
                target = temporary / safe_member(file["path"])
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as out:
                    for chunk in self.read(file["sha256"]):
                        out.write(chunk)
            temporary.mkdir(parents=True, exist_ok=True)
            dest.parent.mkdir(parents=True, exist_ok=True)
            try:
                temporary.rename(dest)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
                # Somebody else fetched the same content first; theirs is as good.
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def open(self, sha256: str) -> IO[bytes]:
        """A blob as it is stored. Raises `CorruptArtifact` when it is not there."""
        try:
            return self._files.open(self._blob(sha256), "rb")  # type: ignore[no-any-return]
        except FileNotFoundError:
            raise CorruptArtifact(
                f"blob {sha256[:12]} is missing from the artifact store", hint="Restore it from a backup."
            ) from None

    def read(self, sha256: str) -> Iterator[bytes]:
        """A blob's content in chunks. Raises `CorruptArtifact` at its end when it does not match its hash."""
        digest = hashlib.sha256()
        with self.open(sha256) as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                yield chunk
        if digest.hexdigest() != sha256:
            raise CorruptArtifact(
                f"blob {sha256[:12]} of the artifact store is damaged", hint="Restore it from a backup."
            )

    def exists(self, sha256: str) -> bool:
        return bool(self._files.exists(self._blob(sha256)))

    def _blob(self, sha256: str) -> str:
        return f"{self._root}/blobs/{sha256[:2]}/{sha256}"

    def _is_intact(self, sha256: str) -> bool:
        """Whether the blob is there and whole. A damaged one is stored anew: what matches its hash mends it."""
        try:
            for _ in self.read(sha256):
                pass
        except CorruptArtifact:
            return False
        return True

    def _put_file(self, path: Path) -> tuple[str, int]:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        size = path.stat().st_size
        blob = self._blob(sha256)
        if self._is_intact(sha256):
            return sha256, size
        temporary = f"{self._root}/incoming/{uuid.uuid4().hex}"
        self._files.makedirs(os.path.dirname(temporary), exist_ok=True)
        self._files.makedirs(os.path.dirname(blob), exist_ok=True)
        try:
            copied = hashlib.sha256()
            with path.open("rb") as source, self._files.open(temporary, "wb") as target:
                while chunk := source.read(_CHUNK):
                    copied.update(chunk)
                    target.write(chunk)
                if self._local:
                    target.flush()
                    os.fsync(target.fileno())
            if copied.hexdigest() != sha256:
                raise CorruptArtifact(f"{path.name} changed while it was being stored", hint="Store it again.")
            if self._local:
                os.replace(temporary, blob)
                _sync_folder(os.path.dirname(blob))
            else:
                self._files.mv(temporary, blob)
        except BaseException:
            if self._files.exists(temporary):
                self._files.rm(temporary)
            raise
        return sha256, size


def safe_member(path: str) -> str:
    """A relative path that stays inside its folder. Raises `CorruptArtifact` otherwise."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts or "\\" in path or "\x00" in path:
        raise CorruptArtifact(f"the file name {path!r} leaves its folder")
    return path


def _sync_folder(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
