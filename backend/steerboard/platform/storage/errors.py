"""What can go wrong between us and a store. None of them ever carries a key of it."""

from __future__ import annotations

from steerboard_contracts.errors import SteerboardError


class CorruptArtifact(SteerboardError):
    """A file of the store is missing or its content does not match its hash."""

    code = "corrupt_artifact"
    title = "A stored file is damaged"


class BadStoreUrl(SteerboardError):
    """The URL is of no kind of store that this installation can use."""

    code = "bad_artifact_url"
    title = "The artifact store cannot be used"


class StoreUnavailable(SteerboardError):
    """The store did not answer, or only with errors of its own, however often it was asked. Retryable."""

    code = "artifact_store_unavailable"
    status = 503
    title = "The artifact store does not answer"
    retryable = True


class StoreRefused(SteerboardError):
    """The store does not accept our credentials, or they do not allow this."""

    code = "artifact_store_refused"
    status = 502
    title = "The artifact store refused access"


class NoSuchBucket(SteerboardError):
    """The bucket of the store's URL does not exist."""

    code = "artifact_store_missing"
    status = 502
    title = "The artifact store does not exist"


class StoreFailed(SteerboardError):
    """The store answered with an error that a retry would not fix."""

    code = "artifact_store_failed"
    status = 502
    title = "The artifact store cannot do this"
