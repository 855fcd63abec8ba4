"""A bucket as a store, through boto3. Endpoint, region and keys come from the usual `AWS_*` variables or files.

There is no rename on S3, and none is needed: an object appears under its name whole, when its upload is completed,
which happens only once the content has turned out to have its hash. What was begun and not completed is aborted, or,
after a crash, found by `unfinished`.

Every object carries its SHA-256 as metadata, and each request that brought its content was checked by the store against
a checksum, so that a file that is there need not be read to be known.

Parts are sent by us: boto3's transfers put such checksums behind the content, which other stores than Amazon's may not
take, and do not grow the parts of a file whose size they do not know, so that one may have 160 GB. obstore lists no
unfinished uploads and reads no metadata without the object.
"""

from __future__ import annotations

import base64
import hashlib
import io
import uuid
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import IO, Any

from steerboard.platform.storage.backends.calls import Calls
from steerboard.platform.storage.protocol import Hashed, Stored
from steerboard_contracts.errors import SteerboardError

PART_BYTES = 16 << 20
_SAME_SIZE_PARTS = 1000  # then parts grow: there may be 10,000 of them
_PARTS_AT_ONCE = 4
_READ_BYTES = 8 << 20
_REMOVED_AT_ONCE = 1000
_SHA256, _UPLOAD = "sha256", "upload"


class ObjectStorage:
    """Memory: a part size for each of `_PARTS_AT_ONCE` parts while writing, twice `_READ_BYTES` while reading."""

    remote = True

    def __init__(self, url: str, *, patient: bool = True) -> None:
        self.url = url.rstrip("/")
        self._bucket, _, prefix = self.url.removeprefix("s3://").partition("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._calls = Calls(self.url, self._bucket, patient=patient)

    def put(self, name: str, content: IO[bytes], sha256: str | None = None) -> int:
        hashed = Hashed(sha256)
        first = _read(content, PART_BYTES)
        hashed.update(first)
        key, about = self._key(name), {_SHA256: sha256 or "", _UPLOAD: uuid.uuid4().hex}
        if len(first) < PART_BYTES:
            hashed.agree()
            self._calls("put_object", Key=key, Body=first, ChecksumSHA256=_checksum(first), Metadata=about)
            return hashed.size
        begun = self._calls("create_multipart_upload", Key=key, Metadata=about, ChecksumAlgorithm="SHA256")
        upload = begun["UploadId"]
        try:
            parts = self._send_parts(key, upload, first, content, hashed)
            hashed.agree()
            self._complete(key, upload, parts, about, hashed.size)
        except BaseException:
            with suppress(SteerboardError, FileNotFoundError):
                self._calls("abort_multipart_upload", Key=key, UploadId=upload)
            raise
        return hashed.size

    def _send_parts(
        self, key: str, upload: str, first: bytes, content: IO[bytes], hashed: Hashed
    ) -> list[dict[str, Any]]:
        sent: list[dict[str, Any]] = []
        waiting: deque[Future[dict[str, Any]]] = deque()
        part = first
        with ThreadPoolExecutor(_PARTS_AT_ONCE) as pool:
            while part:
                number = len(sent) + len(waiting) + 1
                waiting.append(pool.submit(self._send_part, key, upload, number, part))
                if len(waiting) == _PARTS_AT_ONCE:
                    sent.append(waiting.popleft().result())
                part = _read(content, PART_BYTES * (1 + number // _SAME_SIZE_PARTS))
                hashed.update(part)
            return sent + [future.result() for future in waiting]

    def _send_part(self, key: str, upload: str, number: int, part: bytes) -> dict[str, Any]:
        checksum = _checksum(part)
        answer = self._calls(
            "upload_part", Key=key, UploadId=upload, PartNumber=number, Body=part, ChecksumSHA256=checksum
        )
        return {"PartNumber": number, "ETag": answer["ETag"], "ChecksumSHA256": checksum}

    def _complete(self, key: str, upload: str, parts: list[dict[str, Any]], about: dict[str, str], size: int) -> None:
        try:
            self._calls("complete_multipart_upload", Key=key, UploadId=upload, MultipartUpload={"Parts": parts})
        except FileNotFoundError:
            # A lost answer: on the retry the store no longer knows the upload, because it has become the object.
            head = self._head(key)
            if head is None or head["ContentLength"] != size or head["Metadata"].get(_UPLOAD) != about[_UPLOAD]:
                raise

    def open(self, name: str) -> IO[bytes]:
        head = self._head(self._key(name))
        if head is None:
            raise FileNotFoundError(name)
        return io.BufferedReader(_Reader(self._calls, self._key(name), head["ContentLength"]), 1 << 20)

    def size(self, name: str) -> int | None:
        head = self._head(self._key(name))
        return None if head is None else int(head["ContentLength"])

    def vouches(self, name: str, sha256: str, size: int) -> bool | None:
        head = self._head(self._key(name))
        if head is None or head["ContentLength"] != size:
            return False
        # One without metadata was brought by another tool.
        return True if head["Metadata"].get(_SHA256) == sha256 else None

    def files(self, prefix: str) -> Iterator[Stored]:
        for page in self._calls.pages("list_objects_v2", Prefix=self._key(prefix)):
            for entry in page.get("Contents", []):
                yield Stored(self._name(entry["Key"]), entry["Size"], entry["LastModified"])

    def folders(self, prefix: str) -> list[str]:
        pages = self._calls.pages("list_objects_v2", Prefix=self._key(prefix), Delimiter="/")
        return [
            entry["Prefix"].removeprefix(self._key(prefix)).rstrip("/")
            for page in pages
            for entry in page.get("CommonPrefixes", [])
        ]

    def remove_folder(self, prefix: str) -> None:
        self.remove([stored.name for stored in self.files(prefix)])

    def remove(self, names: list[str]) -> None:
        for start in range(0, len(names), _REMOVED_AT_ONCE):
            keys = [{"Key": self._key(name)} for name in names[start : start + _REMOVED_AT_ONCE]]
            self._calls.failed(self._calls("delete_objects", Delete={"Objects": keys, "Quiet": True}).get("Errors"))

    def unfinished(self, prefix: str) -> list[Stored]:
        """`name` has the upload's id after a line break, which no name of ours has."""
        return [
            Stored(f"{self._name(entry['Key'])}\n{entry['UploadId']}", 0, entry["Initiated"])
            for page in self._calls.pages("list_multipart_uploads", Prefix=self._key(prefix))
            for entry in page.get("Uploads", [])
        ]

    def remove_unfinished(self, uploads: list[Stored]) -> None:
        for upload in uploads:
            name, _, id_ = upload.name.partition("\n")
            with suppress(FileNotFoundError):
                self._calls("abort_multipart_upload", Key=self._key(name), UploadId=id_)

    def check(self) -> None:
        try:
            self._calls("head_bucket")
        except FileNotFoundError:
            raise self._calls.no_bucket() from None

    def _head(self, key: str) -> dict[str, Any] | None:
        try:
            head: dict[str, Any] = self._calls("head_object", Key=key)
        except FileNotFoundError:
            self._remember_bucket()
            return None
        return {**head, "Metadata": {name.lower(): value for name, value in head.get("Metadata", {}).items()}}

    def _remember_bucket(self) -> None:
        """The answer to HEAD does not tell a missing object from a missing bucket. Asked until it was there once."""
        if not self._calls.bucket_seen:
            self.check()
            self._calls.bucket_seen = True

    def _key(self, name: str) -> str:
        return self._prefix + name

    def _name(self, key: str) -> str:
        return key.removeprefix(self._prefix)


class _Reader(io.RawIOBase):
    """An object by ranges, each requested again if it is interrupted."""

    def __init__(self, calls: Calls, key: str, size: int) -> None:
        self._calls, self._key, self._size = calls, key, size
        self._at = 0
        self._block, self._block_at = b"", 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence])
        return self._at

    def readinto(self, buffer: Any) -> int:
        if self._at >= self._size:
            return 0
        if not self._block_at <= self._at < self._block_at + len(self._block):
            end = min(self._at + _READ_BYTES, self._size)
            self._block, self._block_at = self._calls.read(self._key, self._at, end), self._at
        start = self._at - self._block_at
        data = self._block[start : start + len(buffer)]
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def _read(content: IO[bytes], size: int) -> bytes:
    """Exactly `size` bytes, fewer only at the end."""
    pieces: list[bytes] = []
    while size > 0 and (piece := content.read(size)):
        pieces.append(piece)
        size -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _checksum(data: bytes) -> str:
    return base64.b64encode(hashlib.sha256(data).digest()).decode()
