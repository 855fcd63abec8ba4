"""Tagging, archiving, cancelling and deleting several runs at once. Callers commit and audit."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access
from steerboard.datasets.tables import Dataset
from steerboard.marks import service as marks
from steerboard.marks.schemas import MarksChange
from steerboard.platform.http.errors import Conflict, NotFound
from steerboard.registry.tables import Model
from steerboard.runs.bulk import consequences
from steerboard.runs.bulk.schemas import BulkChange, BulkResult, Consequence
from steerboard.runs.facts.recording import note_words
from steerboard.runs.state import lifecycle
from steerboard.runs.state.announcements import announce
from steerboard.runs.state.transitions import lock_order
from steerboard.runs.tables import (
    LivePairRow,
    Metric,
    Pipeline,
    ProbeStep,
    Run,
    RunAttempt,
    RunCheckpoint,
    RunInput,
    RunLog,
    RunOutput,
    RunTransition,
    SampledGroup,
)
from steerboard_contracts.errors import ErrorLocation

# What refers to a run and goes with it; facts and words are deleted by the database.
OF_A_RUN = (
    RunInput,
    RunOutput,
    RunTransition,
    RunAttempt,
    Metric,
    ProbeStep,
    SampledGroup,
    LivePairRow,
    RunLog,
    RunCheckpoint,
)


class RunsBlocked(Conflict):
    """Something cannot be done to some of the runs; `errors` lists them with the reasons. Nothing was done."""

    code = "runs_blocked"
    title = "It cannot be done to all of the runs"


def preview(session: Session, access: Access, change: BulkChange) -> BulkResult:
    """Raises `NotFound` for a run that is not in the project."""
    return _split(_consequences(session, change, _runs(session, access, change.runs)))


def apply(session: Session, access: Access, change: BulkChange) -> BulkResult:
    """Raises `RunsBlocked` where it cannot be done to all and `skip` is not set, `NotFound`."""
    runs = _runs(session, access, change.runs)
    if change.action in ("cancel", "delete"):
        lock_order(session, runs[0])
        locked = select(Run).where(Run.id.in_(change.runs)).order_by(Run.id).with_for_update(key_share=True)
        session.scalars(locked.execution_options(populate_existing=True)).all()
    result = _split(_consequences(session, change, runs))
    if result.skipped and not change.skip:
        raise RunsBlocked(
            f"{len(result.skipped)} of {len(runs)} runs cannot be {_PAST[change.action]}",
            hint="Leave them out, or do it only to the others (`skip`).",
            errors=[ErrorLocation(location=row.run.name, message=str(row.why)) for row in result.skipped[:100]],
        )
    chosen = {row.run.id for row in result.done}
    _do(session, access, change, [run for run in runs if run.id in chosen])
    return result


_PAST = {"tag": "tagged", "archive": "archived", "restore": "restored", "cancel": "cancelled", "delete": "deleted"}


def _do(session: Session, access: Access, bulk: BulkChange, runs: Sequence[Run]) -> None:
    if bulk.action == "delete":
        remove(session, access.project.id, runs)
        return
    for run in runs:
        if bulk.action == "cancel":
            lifecycle.request_cancel(session, run, access.actor)
            continue
        if bulk.action == "tag":
            change = MarksChange(add_tags=bulk.add_tags, remove_tags=bulk.remove_tags)
        else:
            change = MarksChange(archived=bulk.action == "archive")
        marks.change(session, access, "run", run.id, change)
        if bulk.action == "tag" and run.parent_id is None:
            note_words(session, run.id)


def _consequences(session: Session, change: BulkChange, runs: Sequence[Run]) -> list[Consequence]:
    if change.action == "cancel":
        return consequences.of_cancelling(session, runs)
    if change.action == "delete":
        return consequences.of_deleting(session, runs)
    names = consequences.names_of(session, runs)
    return [Consequence(run=names[run.id]) for run in runs]


def _split(rows: Sequence[Consequence]) -> BulkResult:
    return BulkResult(
        done=[row for row in rows if row.why is None], skipped=[row for row in rows if row.why is not None]
    )


def _runs(session: Session, access: Access, ids: Sequence[uuid.UUID]) -> list[Run]:
    query = select(Run).where(Run.project_id == access.project.id, Run.id.in_(ids))
    runs = {run.id: run for run in session.scalars(query)}
    for id_ in ids:
        if id_ not in runs:
            raise NotFound(f"there is no run `{id_}`", hint="It may have been deleted. Load the list again.")
    return [runs[id_] for id_ in dict.fromkeys(ids)]


def remove(session: Session, project_id: uuid.UUID, runs: Sequence[Run]) -> None:
    """Remove runs with their parts, and with pipelines that are left without a stage. What they made stays."""
    chosen = [run.id for run in runs]
    ids = [*chosen, *consequences.parts_of(session, chosen)]
    pipelines = {run.pipeline_id for run in runs if run.pipeline_id is not None}
    for table in OF_A_RUN:
        session.execute(delete(table).where(table.run_id.in_(ids)))
    for made in (Model, Dataset):
        session.execute(update(made).where(made.run_id.in_(ids)).values(run_id=None))
    marks.forget(session, ids)
    session.execute(delete(Run).where(Run.id.in_(ids)))
    emptied = select(Pipeline.id).where(
        Pipeline.id.in_(pipelines), ~select(Run.id).where(Run.pipeline_id == Pipeline.id).exists()
    )
    gone = list(session.scalars(emptied))
    marks.forget(session, gone)
    session.execute(delete(Pipeline).where(Pipeline.id.in_(gone)))
    announce(session, project_id, "run.deleted", {"runs": [str(id_) for id_ in chosen]})
