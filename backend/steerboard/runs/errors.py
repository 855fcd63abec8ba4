"""What can go wrong with a run itself, apart from the work it does."""

from __future__ import annotations

from steerboard_contracts.errors import BadInput, SteerboardError


class QuotaReached(SteerboardError):
    """The project has used all device-hours that it may use this month."""

    code = "quota_reached"
    status = 409
    title = "The project's quota is used up"


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


class RunNotPausable(SteerboardError):
    """Only a training run that is queued or running can be paused."""

    code = "run_not_pausable"
    status = 409
    title = "The run cannot be paused"


class SettingNotChangeable(BadInput):
    """A setting of a run cannot change while it trains, or not to this value."""

    code = "setting_not_changeable"
    title = "The setting cannot change now"


class PipelineNotResumable(SteerboardError):
    """No stage of the pipeline failed or was cancelled, or one is still being cancelled."""

    code = "pipeline_not_resumable"
    status = 409
    title = "The pipeline cannot be resumed"


class RunNotWaiting(SteerboardError):
    """Only a pending or queued run has a place in the queue that can be changed."""

    code = "run_not_waiting"
    status = 409
    title = "The run is no longer queued"


class UnusableInput(BadInput):
    """A named input does not lead to exactly one dataset or model of the run's project."""

    code = "unusable_input"
    title = "An input of the run cannot be used"


class NoTrainingRows(BadInput):
    """Every row of the dataset that a run is to train on is held out."""

    code = "no_training_rows"
    title = "The dataset has no training rows"


class StageCrashed(SteerboardError):
    """The stage process ended without saying why; `detail` holds the last lines of its log."""

    code = "stage_crashed"
    title = "The stage crashed"
    retryable = True


class NotComparable(SteerboardError):
    """Two reward models have no benchmark on the same items."""

    code = "no_shared_items"
    status = 409
    title = "The models cannot be compared"
