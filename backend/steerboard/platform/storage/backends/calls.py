"""Requests to S3: retried while that can help, and then an error of ours that names the cause."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from steerboard.platform.storage.errors import BadStoreUrl, NoSuchBucket, StoreFailed, StoreRefused, StoreUnavailable
from steerboard_contracts.errors import SteerboardError

_CONNECT_SECONDS, _READ_SECONDS = 10, 30
_ATTEMPTS = 8  # with pauses that double from half a second to 20: about a minute
_HURRIED_SECONDS = 3
_REFUSALS = {
    "AccessDenied",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "401",
    "403",
}
_MISSING = {"NoSuchKey", "NoSuchUpload", "NotFound", "404"}
_PASSING = {"SlowDown", "RequestTimeout", "RequestTimeTooSkewed", "InternalError", "ServiceUnavailable", "Throttling"}
_KEYS_HINT = "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or what your cloud gives instead) for this process, and "
_KEYS_HINT += "allow it to list the bucket and to read, write and delete its objects."


class Calls:
    """One bucket. `calls("head_object", Key=...)`; safe to use from several threads.

    Raises FileNotFoundError for what is not there, and the errors of `storage.errors`.
    """

    def __init__(self, url: str, bucket: str, *, patient: bool) -> None:
        try:
            from boto3.session import Session
            from botocore.config import Config
        except ImportError:
            raise BadStoreUrl(
                f"{url} needs the package boto3", hint="Install it: pip install 'steerboard[s3]'."
            ) from None
        timeouts = (_CONNECT_SECONDS, _READ_SECONDS) if patient else (_HURRIED_SECONDS, _HURRIED_SECONDS)
        # Other AWS tools read this name; boto3 knows only the second one.
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        self._url, self._bucket = url, bucket
        self.bucket_seen = False
        config = Config(
            retries={"mode": "standard", "max_attempts": _ATTEMPTS if patient else 1},
            connect_timeout=timeouts[0],
            read_timeout=timeouts[1],
            # We send SHA-256 ourselves; stores that are not Amazon's may not know the checksums it adds by default.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        self._client: Any = Session(region_name=region).client("s3", config=config)
        self._reads = 2 if patient else 1  # an answer cut short is not tried again by the client

    def __call__(self, method: str, **parameters: Any) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = getattr(self._client, method)(Bucket=self._bucket, **parameters)
        except Exception as error:
            raise self._explained(error) from error
        return answer

    def pages(self, method: str, **query: Any) -> Iterator[dict[str, Any]]:
        try:
            yield from self._client.get_paginator(method).paginate(Bucket=self._bucket, **query)
        except Exception as error:
            explained = self._explained(error)
            raise self.no_bucket() if isinstance(explained, FileNotFoundError) else explained from error

    def read(self, key: str, start: int, end: int) -> bytes:
        """The bytes from `start` up to `end`, which is within the object."""
        from botocore.exceptions import HTTPClientError, IncompleteReadError

        for left in reversed(range(self._reads)):
            try:
                data = bytes(self("get_object", Key=key, Range=f"bytes={start}-{end - 1}")["Body"].read())
                break
            except (HTTPClientError, IncompleteReadError) as error:
                if not left:
                    raise self._explained(error) from error
        if len(data) != end - start:
            raise StoreUnavailable(f"{self._url} sent an incomplete answer", hint="It will be retried.")
        return data

    def failed(self, errors: list[dict[str, Any]] | None) -> None:
        """Raises for what a request on many objects could not do with some of them."""
        for error in errors or []:
            if error.get("Code") not in _MISSING:
                raise self._of_code(str(error.get("Code")), 0, str(error.get("Message")))

    def no_bucket(self) -> NoSuchBucket:
        return NoSuchBucket(
            f"there is no bucket {self._bucket!r} for {self._url}",
            hint="Create the bucket, or correct STEERBOARD_ARTIFACT_URL or AWS_ENDPOINT_URL.",
        )

    def _explained(self, error: Exception) -> Exception:
        from botocore.exceptions import ClientError, NoCredentialsError, PartialCredentialsError

        if isinstance(error, ClientError):
            details = error.response.get("Error", {})
            status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") or 0)
            return self._of_code(str(details.get("Code")), status, str(details.get("Message")))
        if isinstance(error, NoCredentialsError | PartialCredentialsError):
            return StoreRefused(f"there are no credentials for {self._url}", hint=_KEYS_HINT)
        # Connections that were refused, broke or timed out.
        return StoreUnavailable(
            f"{self._url} cannot be reached: {type(error).__name__}: {str(error)[:200]}",
            hint="Check the network and AWS_ENDPOINT_URL; `steerboard doctor` checks again.",
        )

    def _of_code(self, code: str, status: int, message: str) -> SteerboardError | FileNotFoundError:
        if code == "NoSuchBucket":
            return self.no_bucket()
        if code in _MISSING:
            return FileNotFoundError(message)
        if code in _REFUSALS or status in (401, 403):
            return StoreRefused(f"{self._url} refused access: {code}: {message}", hint=_KEYS_HINT)
        if code in _PASSING or status >= 500 or status == 429:
            return StoreUnavailable(f"{self._url} answers with errors: {code}: {message}", hint="Try again later.")
        return StoreFailed(f"{self._url} cannot do this: {code}: {message}", hint="See its log.")
