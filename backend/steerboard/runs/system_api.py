"""The installation over HTTP: its workers and queues."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from sqlalchemy import func, select

from steerboard.platform.settings import Settings
from steerboard.platform.web import Caller, Db, SystemAccessTo, problems
from steerboard.runs import queue
from steerboard.runs.schemas import QueueOut, QueueRuns, WorkerOut
from steerboard.runs.tables import Run, WorkerRow

system_router = APIRouter(prefix="/system", tags=["system"])

Viewer = Annotated[Caller, Depends(SystemAccessTo("read"))]


@system_router.get("/workers", responses=problems())
def list_workers(session: Db, caller: Viewer, request: Request) -> list[WorkerOut]:
    """Every worker that was heard of lately. The run is shown only to those who may see its project."""
    now = session.scalar(select(func.clock_timestamp()))
    assert now is not None
    alive_after = now - _lease(request.app.state.settings)
    rows = session.execute(
        select(WorkerRow, Run.project_id)
        .outerjoin(Run, Run.id == WorkerRow.run_id)
        .order_by(WorkerRow.pool, WorkerRow.id)
    )
    return [_worker(row, project_id, caller, alive_after) for row, project_id in rows]


def _worker(row: WorkerRow, project_id: uuid.UUID | None, caller: Caller, alive_after: dt.datetime) -> WorkerOut:
    mine = caller.project_id is None or caller.project_id == project_id
    return WorkerOut(
        id=row.id,
        name=row.name,
        pool=row.pool,
        host=row.host,
        pid=row.pid,
        devices=row.devices,
        run_id=row.run_id if mine else None,
        started_at=row.started_at,
        heartbeat_at=row.heartbeat_at,
        alive=row.heartbeat_at > alive_after,
    )


@system_router.get("/queues", responses=problems())
def list_queues(session: Db, caller: Viewer, request: Request) -> list[QueueOut]:
    """What waits and runs in each pool, over all projects, and how many living workers serve it."""
    lease = _lease(request.app.state.settings)
    alive = select(WorkerRow.pool, func.count()).where(WorkerRow.heartbeat_at > func.clock_timestamp() - lease)
    workers = {row[0]: row[1] for row in session.execute(alive.group_by(WorkerRow.pool))}
    active = session.execute(
        select(Run.pool, Run.state, func.count(), func.min(Run.queued_at))
        .where(Run.state.in_(("pending", "queued", "running")))
        .group_by(Run.pool, Run.state)
    ).all()
    queues = []
    for pool in sorted(workers.keys() | {row[0] for row in active}):
        counts = {row[1]: row[2] for row in active if row[0] == pool}
        oldest = next((row[3] for row in active if row[0] == pool and row[1] == "queued"), None)
        queues.append(
            QueueOut(
                pool=pool,
                pending=counts.get("pending", 0),
                queued=counts.get("queued", 0),
                running=counts.get("running", 0),
                workers=workers.get(pool, 0),
                oldest_queued_at=oldest,
            )
        )
    return queues


@system_router.get("/queues/{pool}", responses=problems(422))
def get_queue(pool: str, session: Db, caller: Viewer, limit: Annotated[int, Query(ge=1, le=1000)] = 200) -> QueueRuns:
    """The queued runs of a pool in the order in which its workers take them: the first of those that you may see."""
    return queue.waiting(session, caller, pool, limit)


def _lease(settings: Settings) -> dt.timedelta:
    return dt.timedelta(seconds=settings.lease_seconds)
