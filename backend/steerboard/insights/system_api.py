"""The installation over HTTP: its workers and queues."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from sqlalchemy import func, select

from steerboard.accounts.access import Caller, Db, SystemAccessTo
from steerboard.accounts.http.routes import Router
from steerboard.accounts.tables import Project
from steerboard.platform.http.errors import problems
from steerboard.platform.settings import Settings
from steerboard.playground.claims import POOL
from steerboard.runs import queue
from steerboard.runs.schemas.kinds import MethodLeftOut, MethodOut, MethodsOut
from steerboard.runs.schemas.runs import PipelineRef
from steerboard.runs.schemas.worker import QueueOut, QueueRuns, WorkerOut, WorkerRun
from steerboard.runs.tables import Pipeline, Run, WorkerRow
from steerboard_contracts import methods

system_router = Router(prefix="/system", tags=["system"])

# What changes with a GPU's use.
_IN_USE = {"utilization", "memory_used"}

Viewer = Annotated[Caller, Depends(SystemAccessTo("read"))]


@system_router.get("/methods", responses=problems())
def list_methods(caller: Viewer) -> MethodsOut:
    """The training methods, including those of other packages."""
    return MethodsOut(
        methods=[MethodOut.of(spec) for spec in methods.methods().values()],
        left_out=[MethodLeftOut.model_validate(fault) for fault in methods.faults()],
    )


@system_router.get("/workers", responses=problems())
def list_workers(session: Db, caller: Viewer, request: Request) -> list[WorkerOut]:
    """Every worker seen recently. The run is shown only to those who may see its project."""
    now = session.scalar(select(func.clock_timestamp()))
    assert now is not None
    alive_after = now - _lease(request.app.state.settings)
    rows = session.execute(
        select(WorkerRow, Run, Project.name, Pipeline)
        .outerjoin(Run, Run.id == WorkerRow.run_id)
        .outerjoin(Project, Project.id == Run.project_id)
        .outerjoin(Pipeline, Pipeline.id == Run.pipeline_id)
        .order_by(WorkerRow.pool, WorkerRow.id)
    )
    workers = rows.all()
    held = {uuid.UUID(model["project_id"]) for row, *_ in workers for model in row.holds}
    readable = _readable(session, caller, held | {run.project_id for _, run, *_ in workers if run is not None})
    return [
        _worker(row, _running(run, project, pipeline, readable), alive_after, readable)
        for row, run, project, pipeline in workers
    ]


def _readable(session: Db, caller: Caller, project_ids: set[uuid.UUID]) -> set[uuid.UUID]:
    """The projects that the caller may read."""
    projects = session.scalars(select(Project).where(Project.id.in_(project_ids)))
    return {project.id for project in projects if caller.scopes_in(session, project) & {"read", "admin"}}


def _running(run: Run | None, project: str, pipeline: Pipeline | None, readable: set[uuid.UUID]) -> WorkerRun | None:
    if run is None or run.project_id not in readable:
        return None
    of = PipelineRef.model_validate(pipeline) if pipeline else None
    return WorkerRun(id=run.id, project=project, name=run.name, kind=run.kind, method=run.method, pipeline=of)


def _worker(row: WorkerRow, run: WorkerRun | None, alive_after: dt.datetime, readable: set[uuid.UUID]) -> WorkerOut:
    return WorkerOut(
        id=row.id,
        name=row.name,
        pool=row.pool,
        host=row.host,
        pid=row.pid,
        devices=_devices(row),
        busy=row.run_id is not None,
        run_id=run.id if run else None,
        run=run,
        holds=sorted(held["name"] for held in row.holds if uuid.UUID(held["project_id"]) in readable),
        started_at=row.started_at,
        heartbeat_at=row.heartbeat_at,
        alive=row.heartbeat_at > alive_after,
    )


def _devices(row: WorkerRow) -> dict[str, Any]:
    """The devices, without the use of the playground's GPUs: a model that is loaded for a battle shows by its size."""
    gpus = row.devices.get("gpus")
    if row.pool != POOL or not gpus:
        return row.devices
    return {**row.devices, "gpus": [{name: gpu[name] for name in gpu.keys() - _IN_USE} for gpu in gpus]}


@system_router.get("/queues", responses=problems())
def list_queues(session: Db, caller: Viewer, request: Request) -> list[QueueOut]:
    """Queued and running runs in each pool, over all projects, and its live workers."""
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
