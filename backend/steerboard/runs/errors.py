"""What can go wrong with a run itself, apart from the work it does."""

from __future__ import annotations

from steerboard_contracts.errors import BadInput, SteerboardError


class LeaseLost(SteerboardError):
    """A newer attempt, an ending or another worker has taken the run: this attempt may write nothing more."""

    code = "lease_lost"
    status = 409
    title = "The run belongs to another attempt"


class RunNotActive(SteerboardError):
    """Only a pending, queued or running run can be cancelled."""

    code = "run_not_active"
    status = 409
    title = "The run has ended"


class RunNotResumable(SteerboardError):
    """Only a failed or cancelled run can be resumed, and only after what it waits for."""

    code = "run_not_resumable"
    status = 409
    title = "The run cannot be resumed"


class RunNotWaiting(SteerboardError):
    """Only a pending or queued run has a place in the queue that can be changed."""

    code = "run_not_waiting"
    status = 409
    title = "The run no longer waits"


class UnusableInput(BadInput):
    """A named input does not lead to exactly one dataset or model of the run's project."""

    code = "unusable_input"
    title = "An input of the run cannot be used"


class StageCrashed(SteerboardError):
    """The stage process ended without saying why; `detail` holds the last lines of its log."""

    code = "stage_crashed"
    title = "The stage crashed"
    retryable = True


class StageKilled(SteerboardError):
    """Something outside Steerboard killed the stage process."""

    code = "stage_killed"
    title = "The stage was killed"
    retryable = True


class WorkerLost(SteerboardError):
    """The worker stopped renewing its lease: it died, froze or lost the database."""

    code = "worker_lost"
    title = "The worker was lost"
    retryable = True
