"""How an attempt ends: success, a failure that is tried again or is final, a stop, a cancellation.

Each function takes the run's row locked (by `claims.fenced` or the sweeper) and writes state, attempt, accounting
and event in the caller's transaction.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import func
from sqlalchemy.orm import Session

from steerboard.runs.hooks import News
from steerboard.runs.state.announcements import note_news
from steerboard.runs.state.transitions import move
from steerboard.runs.tables import Run, RunAttempt
from steerboard_contracts.errors import ErrorLocation, SteerboardError
from steerboard_contracts.stage.events import Fix, Paused

_LONGEST_WAIT = 600.0
# Codes of failures of the machine or the platform, not of the stage.
_INTERRUPTIONS = frozenset({"worker_lost", "database_unavailable"})


@dataclass(frozen=True)
class Failure:
    """Why an attempt failed. `retryable`: another attempt may succeed. `fix`: one with other settings should."""

    code: str
    detail: str
    hint: str | None = None
    errors: list[ErrorLocation] = field(default_factory=list)
    retryable: bool = False
    fix: Fix | None = None

    @classmethod
    def of(cls, error: SteerboardError) -> Failure:
        return cls(error.code, error.detail, error.hint, error.errors, error.retryable)

    @property
    def interrupts(self) -> bool:
        """Whether the stage had no part in it, so that the attempt does not count as failed."""
        return self.code in _INTERRUPTIONS

    def document(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "detail": self.detail,
            "hint": self.hint,
            "errors": [place.model_dump() for place in self.errors[:100]],
            "fix": self.fix.model_dump() if self.fix else None,
        }


def succeed(session: Session, run: Run, summary: dict[str, Any], device_seconds: float) -> None:
    """Outputs are already in the transaction."""
    run.summary = summary
    run.error = None
    if run.changes:
        run.cache_key = None  # an equal config would give something else
    run.device_seconds += device_seconds
    _end_attempt(session, run, "succeeded", None, device_seconds)
    move(session, run, "succeeded", "finished")


def fail(session: Session, run: Run, failure: Failure, device_seconds: float, retry_seconds: float) -> None:
    """Queue the run again after a pause that doubles each time, or let it fail with this reason.

    Interruptions are counted apart from failures of the stage, against a limit of their own: a run that takes its
    machine down each time has to end, too. Failures that other settings would fix are not retried with the same ones.
    A run whose cancellation was asked for is cancelled instead: no one wants another attempt.
    """
    if run.cancel_requested_at is not None:
        cancel(session, run, device_seconds)
        return
    run.failed_device_seconds += device_seconds
    run.error = failure.document()
    tally = _count(run, failure)
    reason = f"{failure.code}: {failure.detail}"
    _end_attempt(session, run, "interrupted" if failure.interrupts else "failed", reason, device_seconds)
    again = failure.retryable and failure.fix is None
    if again and run.pause_requested_at is not None:
        _pause(
            session, run, f"paused by {run.pause_requested_by} when its attempt failed: {failure.detail}", code="paused"
        )
        return
    if again and tally.times < tally.limit:
        pause = min(retry_seconds * 2.0 ** (tally.times - 1), _LONGEST_WAIT)
        run.not_before = func.clock_timestamp() + dt.timedelta(seconds=pause)
        reason = f"attempt {run.attempt} failed ({failure.code}): {failure.detail} Tried again ({tally})."
        move(session, run, "queued", reason, failure.code)
        return
    move(session, run, "failed", f"{failure.detail} ({tally})" if tally.times > 1 else failure.detail, failure.code)


@dataclass(frozen=True)
class _Tally:
    """How often what has just happened did, and may."""

    what: str
    times: int
    limit: int

    def __str__(self) -> str:
        return f"{self.what} {self.times} of at most {self.limit}"


def _count(run: Run, failure: Failure) -> _Tally:
    if failure.interrupts:
        run.interruptions += 1
        return _Tally("interruption", run.interruptions, run.max_interruptions)
    run.failed_attempts += 1
    return _Tally("failed attempt", run.failed_attempts, run.max_attempts)


def stop(session: Session, run: Run, reason: str, device_seconds: float) -> None:
    """The worker goes away on purpose: queued again at its old place, and the attempt does not count."""
    if run.cancel_requested_at is not None:
        cancel(session, run, device_seconds)
        return
    run.failed_device_seconds += device_seconds
    _end_attempt(session, run, "stopped", reason, device_seconds)
    if run.pause_requested_at is not None:
        _pause(session, run, f"paused by {run.pause_requested_by}", code="paused")
        return
    move(session, run, "queued", reason, "worker_stopped")


def pause(session: Session, run: Run, how: Paused, device_seconds: float) -> None:
    """The stage kept a checkpoint and ended, as it was asked to: the attempt does not count, its work does."""
    if run.cancel_requested_at is not None:
        cancel(session, run, device_seconds)
        return
    run.device_seconds += device_seconds
    _end_attempt(session, run, "paused", None, device_seconds)
    if how.by_rule is None:
        _pause(session, run, f"paused by {run.pause_requested_by or 'its worker'} after step {how.step}", code="paused")
    else:
        _pause(
            session, run, f"paused after step {how.step} by the rule {how.by_rule}: {how.reason}", code="health_rule"
        )


def _pause(session: Session, run: Run, reason: str, code: str) -> None:
    run.pause_requested_at = run.pause_requested_by = None
    move(session, run, "paused", reason, code)
    note_news(session, News(run.project_id, "run.paused", {}, run))


def cancel(session: Session, run: Run, device_seconds: float) -> None:
    run.failed_device_seconds += device_seconds
    reason = f"cancelled by {run.cancel_requested_by or 'its worker'}"
    _end_attempt(session, run, "cancelled", reason, device_seconds)
    move(session, run, "cancelled", reason, "cancelled")


def _end_attempt(session: Session, run: Run, outcome: str, reason: str | None, device_seconds: float) -> None:
    attempt = session.get_one(RunAttempt, (run.id, run.attempt))
    attempt.outcome, attempt.reason, attempt.device_seconds = outcome, reason, device_seconds
    attempt.ended_at = func.clock_timestamp()
