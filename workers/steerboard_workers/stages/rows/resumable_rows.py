"""The rows that a stage has finished, and those of its earlier attempts."""

from __future__ import annotations

from steerboard_contracts.files.resumable_rows import ResumableRows
from steerboard_workers.stages.runtime import Stage


def resumable_rows(stage: Stage, key: tuple[str, ...]) -> ResumableRows:
    """Logs how many rows earlier attempts have finished."""
    resumed = ResumableRows(stage.checkpoints, stage.spec.attempt, key)
    if resumed.rows:
        stage.log(f"resuming: {len(resumed.rows)} rows are already done")
    return resumed
