"""The artifact store: blobs by their SHA-256, each of which appears whole or not at all (`platform.storage`).

A folder is stored as its files' blobs plus a manifest; the manifest's hash names the folder's content.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
import shutil
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from steerboard.platform.storage.disk import create_file
from steerboard.platform.storage.errors import CorruptArtifact
from steerboard.platform.storage.from_url import open_storage
from steerboard.platform.storage.protocol import CHUNK, Storage, Stored
from steerboard_contracts.errors import SteerboardError

__all__ = ["ArtifactStore", "CorruptArtifact", "Manifest", "safe_member"]

CHECKPOINTS = "checkpoints/"  # of `runs.checkpoints.stored`, likewise
LOG_PROBS = "log-probs/"  # of frozen models, which runs share: no blobs, and in no backup
IMPORTS = "imports/"  # files by the names of `datasets.imports.files`, which are not blobs
_BLOBS = "blobs/"
_FETCHED_AT_ONCE = 4
_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)


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
    """Files by content below one URL: `file:///FOLDER` or `s3://BUCKET/PREFIX`. May be used from several threads."""

    def __init__(self, url: str, *, storage: Storage | None = None) -> None:
        """Raises `BadStoreUrl`. Nothing is asked of the store yet."""
        self.url = url
        self.storage = storage or open_storage(url)

    def outlives(self, home: Path) -> bool:
        """Whether the store is more than a folder of this home, and so there when the home's disk is gone."""
        return self.storage.remote or not Path(self.storage.url.removeprefix("file://")).is_relative_to(home)

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

    def put(self, sha256: str, content: IO[bytes]) -> None:
        """Store one blob. Raises `CorruptArtifact` when the content has another hash."""
        self.storage.put(self.name_of(sha256), content, sha256)

    def fetch(self, manifest: Manifest, dest: Path) -> None:
        """Make `dest` a folder of exactly the manifest's files, each verified. `dest` appears whole or not at all."""
        temporary = dest.with_name(f".{dest.name}.{uuid.uuid4().hex}.partial")
        try:
            self.fetch_into(manifest, temporary)
            dest.parent.mkdir(parents=True, exist_ok=True)
            try:
                temporary.rename(dest)
            except OSError as error:
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
                # Someone else fetched the same content first; theirs is as good.
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def fetch_into(self, manifest: Manifest, folder: Path) -> None:
        """The manifest's files, each verified, in a folder that no one else looks at yet."""
        folder.mkdir(parents=True, exist_ok=True)
        targets = [(folder / safe_member(file["path"]), file["sha256"]) for file in manifest.files]
        for target, _ in targets:
            target.parent.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(_FETCHED_AT_ONCE if self.storage.remote else 1) as pool:
            for _ in pool.map(self._fetch_file, *zip(*targets, strict=True)) if targets else ():
                pass

    def _fetch_file(self, target: Path, sha256: str) -> None:
        with create_file(target, "a copy of a model") as out:
            for chunk in self.read(sha256):
                out.write(chunk)

    def open(self, sha256: str) -> IO[bytes]:
        """A blob as it is stored. Raises `CorruptArtifact` when it is not there."""
        try:
            return self.storage.open(self.name_of(sha256))
        except FileNotFoundError:
            raise CorruptArtifact(
                f"blob {sha256[:12]} is missing from the artifact store", hint="Restore it from a backup."
            ) from None

    def read(self, sha256: str) -> Iterator[bytes]:
        """A blob's content in chunks. Raises `CorruptArtifact` at its end when it does not match its hash."""
        with self.open(sha256) as file:
            yield from verified(file, sha256, f"blob {sha256[:12]}")

    @staticmethod
    def name_of(sha256: str) -> str:
        """The name of a blob in the storage. Raises `CorruptArtifact` for what is not a hash: it would be part of a
        path."""
        return f"{_BLOBS}{sha256[:2]}/{checked_hash(sha256)}"

    def has_size(self, sha256: str, size: int) -> bool:
        """Whether a blob is there, by its size alone: each appears whole, so only damage would leave it another."""
        return self.storage.size(self.name_of(sha256)) == size

    def is_intact(self, sha256: str, size: int) -> bool:
        """Whether the blob is there and whole. It is read only where the store itself cannot tell."""
        vouched = self.storage.vouches(self.name_of(sha256), sha256, size)
        if vouched is not None:
            return vouched
        try:
            for _ in self.read(sha256):
                pass
        except CorruptArtifact:
            return False
        return True

    def blobs(self) -> Iterator[tuple[str, Stored]]:
        """Every blob that is stored, with its SHA-256."""
        for stored in self.storage.files(_BLOBS):
            sha256 = stored.name.rpartition("/")[2]
            if _HASH.fullmatch(sha256):  # of other files we know nothing
                yield sha256, stored

    def unfinished(self) -> list[Stored]:
        """Uploads of blobs, of files of imports and of checkpoints that no one finished."""
        return [upload for prefix in (_BLOBS, IMPORTS, CHECKPOINTS) for upload in self.storage.unfinished(prefix)]

    def remove(self, hashes: list[str]) -> None:
        """Only `steerboard.maintenance.garbage_collection` knows when that is safe."""
        self.storage.remove([self.name_of(sha256) for sha256 in hashes])

    def _put_file(self, path: Path) -> tuple[str, int]:
        """A damaged blob is stored again: content with the right hash repairs it."""
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        size = path.stat().st_size
        if not self.is_intact(sha256, size):
            with path.open("rb") as file:
                self.put(sha256, file)
        return sha256, size


def checked_hash(sha256: str) -> str:
    """Raises `CorruptArtifact` unless it is a SHA-256 as we write it: 64 hexadecimal digits."""
    if not _HASH.fullmatch(sha256):
        raise CorruptArtifact(f"{sha256[:80]!r} is not the SHA-256 of a stored file", hint="Restore it from a backup.")
    return sha256


def verified(content: IO[bytes], sha256: str, what: str) -> Iterator[bytes]:
    """What is left of `content` in chunks. Raises `CorruptArtifact` at its end when it does not match its hash."""
    digest = hashlib.sha256()
    while chunk := content.read(CHUNK):
        digest.update(chunk)
        yield chunk
    if digest.hexdigest() != sha256:
        raise CorruptArtifact(f"{what} of the artifact store is damaged", hint="Restore it from a backup.")


def safe_member(path: str) -> str:
    """A relative path that stays inside its folder. Raises `CorruptArtifact` otherwise."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts or "\\" in path or "\x00" in path:
        raise CorruptArtifact(f"the file name {path!r} leaves its folder")
    return path
