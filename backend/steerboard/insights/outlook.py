"""How far a pipeline is, and how long its rest will take, from what equal stages of its recipe took before."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence

from pydantic import BaseModel
from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session, aliased

from steerboard.insights.likeness import number_of_living_workers
from steerboard.runs.pipelines import service as pipelines
from steerboard.runs.state.states import DONE
from steerboard.runs.tables import Pipeline, Run, RunInput
from steerboard.runs.time_left import seconds_left

# A stage that takes longer than it did before is never shown as done.
_MOST = 0.95
# Before this share of a stage's work, its pace predicts little.
_PACE = 0.1


class PipelineOutlook(BaseModel):
    """`share`: from 0 to 1, stages weighted by how long they took before. `seconds_left`: null while a stage has
    nothing to be estimated from, which `unknown` names. `running`: ids of the stages under way."""

    stages: int
    ended: int
    share: float
    seconds_left: float | None
    unknown: list[str]
    running: list[uuid.UUID]


def outlook(session: Session, pipeline: Pipeline) -> PipelineOutlook:
    stages = pipelines.stages_of(session, pipeline)
    now = session.scalar(select(func.clock_timestamp()))
    assert now is not None
    before = _took_before(session, pipeline)
    ended = [run for run in stages if run.state in DONE]
    known = [before[run.name] for run in stages if run.name in before]
    usual = sum(known) / len(known) if known else 1.0
    weights = {run.id: before.get(run.name, usual) for run in stages}
    shares = {run.id: 1.0 if run.state in DONE else _share(run, before.get(run.name), now) for run in stages}
    training = seconds_left(session, stages)
    left = {
        run.id: 0.0
        if run.state in DONE
        else _left(run, before.get(run.name), shares[run.id], training.get(run.id), now)
        for run in stages
    }
    unknown = [run.name for run in stages if left[run.id] is None]
    whole = sum(weights.values())
    seconds = {id_: seconds for id_, seconds in left.items() if seconds is not None}
    return PipelineOutlook(
        stages=len(stages),
        ended=len(ended),
        share=sum(weights[id_] * shares[id_] for id_ in weights) / whole if whole else 0.0,
        seconds_left=None if unknown else _scheduled(session, stages, seconds),
        unknown=unknown,
        running=[run.id for run in stages if run.state == "running" or _at_work(run)],
    )


def _at_work(run: Run) -> bool:
    """An evaluation whose parts are at work is pending, since no worker has it."""
    return run.kind == "evaluate" and run.state == "pending" and run.started_at is not None


def _took_before(session: Session, pipeline: Pipeline) -> dict[str, float]:
    """Name of a stage -> seconds that it took in the newest earlier pipeline of the recipe in which it ran."""
    stage, earlier = aliased(Run), aliased(Pipeline)
    rows = session.execute(
        select(stage.name, stage.started_at, stage.ended_at)
        .join(earlier, earlier.id == stage.pipeline_id)
        .where(
            earlier.project_id == pipeline.project_id,
            earlier.recipe["name"].astext == pipeline.recipe.get("name", ""),
            earlier.id < pipeline.id,
            stage.parent_id.is_(None),
            stage.state == "succeeded",
            stage.reused_from_id.is_(None),
            stage.started_at.is_not(None),
        )
        .ext(distinct_on(stage.name))
        .order_by(stage.name, stage.id.desc())
    )
    return {name: (ended - started).total_seconds() for name, started, ended in rows if started and ended}


def _share(run: Run, before: float | None, now: dt.datetime) -> float:
    """How much of a stage is done: by time where it is known how long it takes, since each phase counts from 0."""
    if run.started_at is None or run.state == "queued":
        return 0.0
    if before:
        return min(_MOST, (now - run.started_at).total_seconds() / before)
    progress = run.progress or {}
    total = progress.get("total") or 0
    return min(_MOST, progress.get("done", 0) / total) if total > 1 else 0.0


def _left(run: Run, before: float | None, share: float, by_steps: float | None, now: dt.datetime) -> float | None:
    """Seconds, or None where nothing is known."""
    if by_steps is not None:
        return by_steps
    if before is not None:
        return before * (1 - share)
    if run.started_at is None or share < _PACE:
        return None
    return (now - run.started_at).total_seconds() * (1 - share) / share


def _scheduled(session: Session, stages: Sequence[Run], left: Mapping[uuid.UUID, float]) -> float:
    """Never less than the longest chain of stages that wait for each other, nor than all work shared by the workers."""
    workers = max(1, number_of_living_workers(session))
    needs: dict[uuid.UUID, list[uuid.UUID]] = {run.id: [] for run in stages}
    for run_id, upstream in session.execute(
        select(RunInput.run_id, RunInput.upstream_run_id).where(
            RunInput.run_id.in_(needs), RunInput.upstream_run_id.is_not(None)
        )
    ):
        needs[run_id] += [upstream] if upstream else []
    ends: dict[uuid.UUID, float] = {}
    for run in stages:  # in the order of the plan: what a stage needs comes before it
        ends[run.id] = left[run.id] + max((ends.get(upstream, 0.0) for upstream in needs[run.id]), default=0.0)
    return max(sum(left.values()) / workers, max(ends.values(), default=0.0))
