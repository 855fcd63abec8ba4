"""Why something was not backed up, restored or collected."""

from __future__ import annotations

from steerboard_contracts.errors import SteerboardError


class BadBackup(SteerboardError):
    """There is no backup, or it is damaged, or of a kind that this version cannot read."""

    code = "bad_backup"
    status = 422
    title = "The backup cannot be used"


class NotEmpty(SteerboardError):
    """Restoring into something that holds other things already would lose or mix them."""

    code = "not_empty"
    status = 409
    title = "It is not empty"


class StoreBusy(SteerboardError):
    """A backup, or someone who stores something, held the store for so long that collecting gave up."""

    code = "store_busy"
    status = 409
    title = "The artifact store is in use"
    retryable = True
