"""Pipelines as a whole: their state follows from their runs."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from sqlalchemy import Select, and_, case, func, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.platform.http.errors import NotFound
from steerboard.platform.names import find
from steerboard.runs import queries
from steerboard.runs.errors import PipelineNotResumable
from steerboard.runs.ledger import summed
from steerboard.runs.schemas.runs import PipelineDetail, PipelineSummary
from steerboard.runs.state import lifecycle
from steerboard.runs.state.states import state_of
from steerboard.runs.state.transitions import ENDED, lock, lock_order
from steerboard.runs.tables import Pipeline, Run


def get_pipeline(session: Session, project: Project, ref: str) -> Pipeline:
    """The pipeline by id or name. Raises `NotFound`."""
    pipeline = find(session, select(Pipeline).where(Pipeline.project_id == project.id), Pipeline.id, Pipeline.name, ref)
    if pipeline is None:
        raise NotFound(f"there is no pipeline `{ref}`", hint="List them with `steerboard pipelines list`.")
    return pipeline


def pipelines_of(project: Project) -> Select[Pipeline]:
    return select(Pipeline).where(Pipeline.project_id == project.id)


def summaries(session: Session, ids: Sequence[uuid.UUID]) -> list[PipelineSummary]:
    """Summaries in the order of `ids`. A sharded run carries the cost of its shards, once it has them all.

    An evaluation whose parts are at work counts as running, though no worker has it."""
    evaluation = Run.kind == "evaluate"
    at_work = and_(evaluation, Run.state == "pending", Run.started_at.is_not(None))
    state_shown = case((at_work, "running"), else_=Run.state)
    rows = session.execute(
        select(
            Run.pipeline_id,
            state_shown,
            func.count(),
            func.sum(Run.device_seconds),
            func.sum(Run.failed_device_seconds),
            func.max(Run.ended_at),
            func.min(Run.started_at),
        )
        .where(Run.pipeline_id.in_(ids), Run.parent_id.is_(None))
        .group_by(Run.pipeline_id, state_shown)
    ).all()
    pipelines = {row.id: row for row in session.scalars(select(Pipeline).where(Pipeline.id.in_(ids)))}
    out = []
    for pipeline in (pipelines[id_] for id_ in ids):
        own = [row for row in rows if row[0] == pipeline.id]
        counts = {row[1]: row[2] for row in own}
        state = state_of(counts)
        ends = [row[5] for row in own if row[5] is not None]
        starts = [row[6] for row in own if row[6] is not None]
        out.append(
            PipelineSummary(
                id=pipeline.id,
                name=pipeline.name,
                recipe=str(pipeline.recipe.get("name", "")),
                state=state,
                stages=counts,
                device_seconds=sum(row[3] for row in own),
                failed_device_seconds=sum(row[4] for row in own),
                created_by=pipeline.created_by,
                created_at=pipeline.created_at,
                started_at=min(starts, default=None),
                ended_at=max(ends, default=None) if state in ENDED else None,
            )
        )
    return out


def detail(session: Session, pipeline: Pipeline) -> PipelineDetail:
    stages = stages_of(session, pipeline)
    return PipelineDetail(
        **summaries(session, [pipeline.id])[0].model_dump(),
        ledger=summed(session, stages),
        runs=queries.summaries(session, stages),
        recipe_text=pipeline.recipe_text,
        settings=pipeline.settings,
    )


def stages_of(session: Session, pipeline: Pipeline) -> list[Run]:
    """Its runs in the order of the plan, without shards."""
    return list(
        session.scalars(select(Run).where(Run.pipeline_id == pipeline.id, Run.parent_id.is_(None)).order_by(Run.id))
    )


def evaluations_of(runs: Sequence[Run], stage: str | None = None) -> list[Run]:
    """The evaluation `stage`, or all: without those that only decide about the next round, where there are others."""
    evaluations = [run for run in runs if run.kind == "evaluate" and stage in (None, run.name)]
    return [run for run in evaluations if not run.config.get("decides")] or evaluations


def cancel(session: Session, pipeline: Pipeline, actor: str) -> int:
    """Ask every run that has not ended to end, the last ones first. Returns how many were asked."""
    count = 0
    for run in reversed(stages_of(session, pipeline)):
        session.refresh(run)
        if run.state not in ENDED:
            lifecycle.request_cancel(session, run, actor)
            count += 1
    return count


def resume(session: Session, pipeline: Pipeline, actor: str) -> int:
    """Give every failed or cancelled stage new attempts; those that succeeded are kept. Returns how many there were.

    Raises `PipelineNotResumable` while a stage is being cancelled, since the stages behind it would end with it, and
    where there is nothing to resume.
    """
    stages = stages_of(session, pipeline)
    if stages:
        lock_order(session, stages[0])
    stages = [lock(session, run) for run in stages]
    being_cancelled = select(Run.name).where(
        Run.pipeline_id == pipeline.id, Run.state.not_in(ENDED), Run.cancel_requested_at.is_not(None)
    )
    if leaving := session.scalars(being_cancelled.order_by(Run.id)).all():
        raise PipelineNotResumable(
            f"{', '.join(leaving)} of {pipeline.name} {'are' if len(leaving) > 1 else 'is'} still being cancelled",
            hint="Resume it when that has ended, at its worker's next heartbeat.",
        )
    broken = [run for run in stages if run.state in ("failed", "cancelled")]
    if not broken:
        raise PipelineNotResumable(
            f"no stage of {pipeline.name} has failed or was cancelled",
            hint="To run it again, start its recipe again; equal stages are reused.",
        )
    # In the order of the plan, where a stage's dependencies precede it.
    for run in broken:
        if run.state in ("failed", "cancelled"):
            lifecycle.resume(session, run, actor)
    return len(broken)
