"""Reading runs and what they left behind."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Select, func, select, tuple_
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.held_out_changes import changes_of
from steerboard.datasets.tables import Dataset
from steerboard.marks.service import marks_of
from steerboard.platform.http.errors import NotFound
from steerboard.platform.names import as_id, find_by_id_end
from steerboard.registry.tables import Model
from steerboard.runs import hooks, queue
from steerboard.runs.checkpoints.resumption import resumption
from steerboard.runs.inputs import AFTER, main_first, resolve_all
from steerboard.runs.ledger import ledger_of, phases_of
from steerboard.runs.results.academic import without_scores
from steerboard.runs.schemas.runs import (
    AttemptOut,
    PipelineRef,
    RunChange,
    RunDetail,
    RunFinding,
    RunInputOut,
    RunOutputOut,
    RunSummary,
    TransitionOut,
)
from steerboard.runs.state import oversight
from steerboard.runs.tables import Pipeline, Run, RunAttempt, RunInput, RunLog, RunOutput, RunTransition
from steerboard.runs.time_left import seconds_left
from steerboard_contracts.held_out_changes import HeldOutChange, merged
from steerboard_contracts.metric_order import by_importance
from steerboard_contracts.report.kept import read_report


def get_run(session: Session, project: Project, ref: str) -> Run:
    """The run by id, by its end, by `PIPELINE.STAGE` (of a shard `PIPELINE.STAGE.N`), or by the name of a run of its
    own (the newest one). Raises `NotFound`, `AmbiguousReference`."""
    runs = select(Run).where(Run.project_id == project.id)
    run_id = as_id(ref)
    if run_id is not None:
        run = session.scalar(runs.where(Run.id == run_id))
    else:
        alone = runs.where(Run.name == ref, Run.pipeline_id.is_(None)).order_by(Run.parent_id.is_(None).desc())
        run = (
            find_stage(session, runs, ref)
            or session.scalar(alone.order_by(Run.id.desc()).limit(1))
            or find_by_id_end(session, runs, Run.id, ref)
        )
    if run is None:
        raise NotFound(f"there is no run `{ref}`", hint="Runs are named by their id, or as PIPELINE.STAGE.")
    return run


def find_stage(session: Session, runs: Select[Run], ref: str) -> Run | None:
    """The run that is `PIPELINE.STAGE`; both names may contain dots."""
    places = [(ref[:at], ref[at + 1 :]) for at, letter in enumerate(ref) if letter == "."]
    in_pipeline = runs.join(Pipeline, Pipeline.id == Run.pipeline_id).where(Pipeline.project_id == Run.project_id)
    named = in_pipeline.where(tuple_(Pipeline.name, Run.name).in_(places))
    return session.scalar(named.order_by(Run.parent_id.is_(None).desc(), Run.id.desc()).limit(1)) if places else None


def summaries(session: Session, runs: Sequence[Run]) -> list[RunSummary]:
    """Summaries in the order of `runs`. Their pipelines are one query, and so are their pauses."""
    ids = {run.pipeline_id for run in runs if run.pipeline_id is not None}
    named = session.execute(select(Pipeline.id, Pipeline.name).where(Pipeline.id.in_(ids))) if ids else ()
    pipelines = {row.id: PipelineRef(id=row.id, name=row.name) for row in named}
    computed = ("pipeline", "progress", "seconds_left", "paused_seconds", "paused_since")
    fields = [field for field in RunSummary.model_fields if field not in computed]
    parts = _parts_done(session, runs)
    pauses = _pauses(session, runs)
    left = seconds_left(session, runs)
    return [
        RunSummary.model_validate(
            {
                **{field: getattr(run, field) for field in fields},
                "pipeline": pipelines.get(run.pipeline_id),
                "progress": parts.get(run.id, run.progress),
                "seconds_left": left.get(run.id),
                **pauses.get(run.id, {"paused_seconds": 0.0, "paused_since": None}),
            }
        )
        for run in runs
    ]


def _pauses(session: Session, runs: Sequence[Run]) -> dict[uuid.UUID, dict[str, Any]]:
    """The pauses of the runs that were paused after their start: how long until they resumed, and since when those are
    that have not."""
    trained = [run.id for run in runs if run.kind == "train"]
    if not trained:
        return {}
    order = (RunTransition.created_at, RunTransition.id)
    until = func.lead(RunTransition.created_at).over(partition_by=RunTransition.run_id, order_by=order)
    states = (
        select(
            RunTransition.run_id, RunTransition.to_state, RunTransition.created_at.label("since"), until.label("until")
        )
        .where(RunTransition.run_id.in_(trained))
        .subquery()
    )
    seconds = func.coalesce(func.sum(func.extract("epoch", states.c.until - states.c.since)), 0)
    since = func.max(states.c.since).filter(states.c.until.is_(None))
    query = (
        select(states.c.run_id, seconds, since)
        .join(Run, Run.id == states.c.run_id)
        .where(states.c.to_state == "paused", states.c.since > Run.started_at)
        .group_by(states.c.run_id)
    )
    return {run: {"paused_seconds": float(spent), "paused_since": last} for run, spent, last in session.execute(query)}


def _parts_done(session: Session, runs: Sequence[Run]) -> dict[uuid.UUID | None, dict[str, Any]]:
    """The number of parts that are done, for evaluate runs that wait for their parts."""
    waiting = [run.id for run in runs if run.kind == "evaluate" and run.state == "pending"]
    if not waiting:
        return {}
    done = func.count().filter(Run.state == "succeeded")
    rows = session.execute(
        select(Run.parent_id, done, func.count()).where(Run.parent_id.in_(waiting)).group_by(Run.parent_id)
    )
    return {
        parent: {"done": ended, "total": total, "unit": "parts", "phase": "evaluating"} for parent, ended, total in rows
    }


def detail(session: Session, run: Run, owner: str = "") -> RunDetail:
    """A run with its inputs, outputs, timeline, attempts and shards, and the marks that `owner` sees."""
    # By the database's clock: ids use the clock of the process that moved the run, which may be wrong.
    timeline = session.scalars(
        select(RunTransition).where(RunTransition.run_id == run.id).order_by(RunTransition.created_at, RunTransition.id)
    )
    attempts = session.scalars(select(RunAttempt).where(RunAttempt.run_id == run.id).order_by(RunAttempt.attempt))
    parts = list(session.scalars(select(Run).where(Run.parent_id == run.id).order_by(Run.shard, Run.id)))
    resumed = resumption(session, run)
    return RunDetail(
        **summaries(session, [run])[0].model_dump(),
        queue_position=queue.position_of(session, run),
        resumable=resumed.resumable,
        resume_hint=resumed.hint,
        continues=resumed.resumable and resumed.continues,
        config=run.config,
        summary=by_importance(run.summary) if run.summary is not None else None,
        error=run.error,
        reuse=run.reuse,
        inputs=_inputs(session, run),
        held_out_changes=_held_out_changes(session, run),
        outputs=_outputs(session, run),
        timeline=[TransitionOut.model_validate(row) for row in timeline],
        pausable=oversight.pausable(run),
        pause_requested_at=run.pause_requested_at,
        changes=[RunChange.model_validate(change) for change in run.changes],
        findings=[RunFinding.model_validate(finding) for finding in run.findings],
        changeable=oversight.changeable(run),
        attempts=[_attempt(row, gathers=bool(parts)) for row in attempts],
        ledger=ledger_of(session, run),
        evaluation=_evaluation(session, run),
        shards=summaries(session, parts),
        marks=marks_of(session, owner, [run.id], html=True)[run.id],
    )


def _evaluation(session: Session, run: Run) -> str | None:
    if run.kind != "evaluate" and "evaluation" not in run.config:
        return None
    ids = [run.id, *([run.reused_from_id] if run.reused_from_id else [])]
    return next((name for _, name in hooks.evaluations_with(session, ids)), None)


def _attempt(row: RunAttempt, gathers: bool) -> AttemptOut:
    """One that gathers shards has no phases of its own: they worked."""
    fields = {name: getattr(row, name) for name in AttemptOut.model_fields if name != "phases"}
    return AttemptOut(**fields, phases=[] if gathers and row.outcome == "succeeded" else phases_of(row))


def _inputs(session: Session, run: Run) -> list[RunInputOut]:
    rows = session.execute(
        select(RunInput, Run.name, Dataset.name, Model.name)
        .where(RunInput.run_id == run.id)
        .outerjoin(Run, Run.id == RunInput.upstream_run_id)
        .outerjoin(Dataset, Dataset.id == RunInput.dataset_id)
        .outerjoin(Model, Model.id == RunInput.model_id)
        .order_by(RunInput.name)
    )
    things = resolve_all(session, [run]).get(run.id, {})
    content = {
        name: thing.content_hash if isinstance(thing, Dataset) else thing.artifact_hash
        for name, thing in things.items()
    }
    inputs = []
    for row, run_name, dataset_name, model_name in rows:
        label, type_, id_ = model_name, "model", row.model_id
        if row.upstream_run_id is not None:
            label = f"{run_name}.{row.upstream_output}" if row.upstream_output else run_name
            type_, id_ = "run", row.upstream_run_id
        elif row.dataset_id is not None:
            label, type_, id_ = dataset_name, "dataset", row.dataset_id
        inputs.append(RunInputOut(name=row.name, type=type_, id=id_, label=label, content=content.get(row.name)))
    return inputs


def _held_out_changes(session: Session, run: Run) -> list[HeldOutChange]:
    """The held-out changes of the datasets that it reads, also where a run upstream made them."""
    datasets = session.scalars(
        select(Dataset)
        .select_from(RunInput)
        .outerjoin(RunOutput, RunOutput.run_id == RunInput.upstream_run_id)
        .join(Dataset, Dataset.id == func.coalesce(RunInput.dataset_id, RunOutput.dataset_id))
        .where(RunInput.run_id == run.id, ~RunInput.name.startswith(AFTER))
        .order_by(RunInput.name)
    )
    return merged(*map(changes_of, datasets))


def _outputs(session: Session, run: Run) -> list[RunOutputOut]:
    rows = session.execute(
        select(RunOutput, Dataset.name, Model.name)
        .where(RunOutput.run_id == run.id)
        .outerjoin(Dataset, Dataset.id == RunOutput.dataset_id)
        .outerjoin(Model, Model.id == RunOutput.model_id)
        .order_by(*main_first())
    )
    return [
        RunOutputOut(
            name=row.name,
            type=row.type,
            id=row.dataset_id or row.model_id,
            label=dataset_name or model_name,
            document=_document(row),
        )
        for row, dataset_name, model_name in rows
    ]


def _document(output: RunOutput) -> dict[str, Any] | None:
    """A report of an earlier version is shown in the form of today, if it can be."""
    if output.type == "benchmark" and output.document is not None:
        return {**output.document, "items": None}
    if output.type == "academic" and output.document is not None:
        return without_scores(output.document)
    if output.type != "report" or output.document is None:
        return output.document
    try:
        report = read_report(output.document).report
    except ValidationError:
        return output.document
    return report.model_dump(mode="json") if report is not None else output.document


def log_lines(run: Run, levels: Sequence[str] = ()) -> Select[RunLog]:
    """Lines of a run's log, unordered."""
    query = select(RunLog).where(RunLog.run_id == run.id)
    return query.where(RunLog.level.in_(levels)) if levels else query
