"""The queue of a pool as people see and change it. `claims.py` takes the runs from it."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Subquery, func, select, text
from sqlalchemy.orm import Session

from steerboard.accounts.access import Caller
from steerboard.accounts.service import visible_projects
from steerboard.accounts.tables import Project
from steerboard.runs.errors import RunNotWaiting
from steerboard.runs.schemas.requests import RunPlace
from steerboard.runs.schemas.runs import PipelineRef
from steerboard.runs.schemas.worker import QueuedRun, QueueRuns
from steerboard.runs.state.announcements import announce
from steerboard.runs.state.claims import QUEUE_ORDER, is_due
from steerboard.runs.state.dependencies import shards_of
from steerboard.runs.state.transitions import lock, lock_order
from steerboard.runs.tables import Pipeline, Run

_WAITING = ("pending", "queued")


def position_of(session: Session, run: Run) -> int | None:
    """1 for the run that would be claimed next; None unless it is queued."""
    if run.state != "queued":
        return None
    places = _places(run.pool)
    return session.scalar(select(places.c.position).where(places.c.id == run.id))


def waiting(session: Session, caller: Caller, pool: str, limit: int) -> QueueRuns:
    """The first `limit` queued runs of the caller's projects, in order; positions count those of all projects."""
    places = _places(pool)
    projects = visible_projects(caller).subquery()
    rows = session.execute(
        select(places.c.position, Run, Project.name, Pipeline.name)
        .join(Run, Run.id == places.c.id)
        .join(Project, Project.id == Run.project_id)
        .outerjoin(Pipeline, Pipeline.id == Run.pipeline_id)
        .where(Run.project_id.in_(select(projects.c.id)))
        .order_by(places.c.position)
        .limit(limit)
    )
    runs = [
        QueuedRun(
            position=position,
            id=run.id,
            name=run.name,
            kind=run.kind,
            method=run.method,
            project=project,
            pipeline_id=run.pipeline_id,
            pipeline=PipelineRef(id=run.pipeline_id, name=pipeline) if run.pipeline_id else None,
            parent_id=run.parent_id,
            shard=run.shard,
            priority=run.priority,
            not_before=run.not_before,
            created_by=run.created_by,
            queued_at=run.queued_at,
        )
        for position, run, project, pipeline in rows
    ]
    queued = session.scalar(select(func.count()).select_from(Run).where(*_queued(pool))) or 0
    return QueueRuns(pool=pool, queued=queued, runs=runs)


def move_in_queue(session: Session, run: Run, to: RunPlace) -> None:
    """Change priority and place of a waiting run and of its shards that wait. Raises `RunNotWaiting`.

    Waits for a claim of the run that is under way, so a run that has started is never moved.
    """
    lock_order(session, run)
    run = lock(session, run)
    if run.state not in _WAITING:
        raise RunNotWaiting(
            f"run {run.name} is {run.state}", hint="Only pending and queued runs have a place in the queue."
        )
    shards = [lock(session, shard) for shard in shards_of(session, run)]
    moved = [moving for moving in (*shards, run) if moving.state in _WAITING]
    if to.priority is not None:
        for moving in moved:
            moving.priority = to.priority
    if to.place is not None:
        for moving, position in zip(moved, _free_positions(session, run.pool, to.place, len(moved)), strict=True):
            moving.position = position
    session.flush()
    payload = {
        "run_id": str(run.id),
        "pipeline_id": str(run.pipeline_id) if run.pipeline_id else None,
        "name": run.name,
        "pool": run.pool,
        "priority": run.priority,
    }
    announce(session, run.project_id, "run.moved", payload)


def _free_positions(session: Session, pool: str, place: str, count: int) -> list[int]:
    """Positions before or behind all runs of the pool that wait, in order."""
    if place == "last":
        following = text("SELECT nextval(pg_get_serial_sequence('runs', 'position')) FROM generate_series(1, :count)")
        return list(session.scalars(following, {"count": count}))
    # Two that go first at the same time must not get the same place.
    session.execute(text("SELECT pg_advisory_xact_lock(hashtextextended('queue ' || :pool, 0))"), {"pool": pool})
    first = session.scalar(select(func.min(Run.position)).where(Run.pool == pool, Run.state.in_(_WAITING))) or 0
    return list(range(first - count, first))


def _queued(pool: str) -> tuple[ColumnElement[bool], ...]:
    return Run.state == "queued", Run.pool == pool


def _places(pool: str) -> Subquery:
    """(id, position) of the queued runs of a pool: as they are claimed, those that are not due yet at the end."""
    place = func.row_number().over(order_by=(is_due().desc(), *QUEUE_ORDER)).label("position")
    return select(Run.id, place).where(*_queued(pool)).subquery()
