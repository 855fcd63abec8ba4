"""Evaluate runs: no work of a worker, but a beginning that makes the runs of an evaluation, and an end that keeps what
these found."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlalchemy import func
from sqlalchemy.orm import Session

from steerboard.runs import hooks
from steerboard.runs.state.announcements import discard_on_rollback
from steerboard.runs.state.attempt_outcomes import Failure
from steerboard.runs.state.transitions import move
from steerboard.runs.tables import Run, RunOutput
from steerboard_contracts.errors import SteerboardError

log = logging.getLogger(__name__)

Result = TypeVar("Result")


def begin(session: Session, run: Run) -> None:
    """Make the children of a locked pending run whose inputs are there. Where that is refused, such as for prompts
    that are not there, the run fails and leaves nothing behind."""
    if _tried(session, run, lambda: hooks.begin_evaluation(session, run)) is None:
        return
    run.error = None
    if run.started_at is None:
        run.started_at = func.clock_timestamp()
    run.reason = "its answers and rewards are in progress"
    session.flush()


def finish(session: Session, run: Run, children: Sequence[Run]) -> None:
    """The end of a locked pending run whose children have all succeeded. It carries what they cost."""
    finished = _tried(session, run, lambda: hooks.finish_evaluation(session, run))
    if finished is None:
        return
    document, run.summary = finished
    session.add(RunOutput(run_id=run.id, name="report", type="report", document=document))
    run.device_seconds = sum(child.device_seconds for child in children)
    run.failed_device_seconds = sum(child.failed_device_seconds for child in children)
    move(session, run, "succeeded", "finished")


def _tried(session: Session, run: Run, work: Callable[[], Result]) -> Result | None:
    """What `work` returns, or None where it failed, and with it the run; nothing of its changes is left then."""
    try:
        with discard_on_rollback(session), session.begin_nested():
            return work()
    except SteerboardError as error:
        failure = Failure.of(error)
    except Exception:
        # One evaluation that breaks must not keep every other run from being settled.
        log.exception("the evaluation of run %s (%s) failed", run.name, run.id)
        hint = "The server's log has the traceback. What was answered is kept; resume the run to try again."
        failure = Failure("evaluation_failed", "The evaluation hit an unexpected error.", hint)
    run.error = failure.document()
    move(session, run, "failed", failure.detail, failure.code)
    return None
