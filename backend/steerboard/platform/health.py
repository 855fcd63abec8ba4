"""For probes, without a token: `/api/v1/system/live` (does the process answer) and `/api/v1/system/health` (which part
is ill, and nothing else)."""

from __future__ import annotations

from typing import Literal

import redis
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from steerboard.platform.redis_url import connect

router = APIRouter(prefix="/system", tags=["system"])

State = Literal["ok", "unavailable"]


class Health(BaseModel):
    """`ok` when requests can be served. Without Redis they can: only wake-ups and live updates come later. Without the
    artifact store only those for files of models and imports fail."""

    status: Literal["ok", "degraded", "unavailable"]
    database: State
    redis: State
    artifacts: State


@router.get("/live", include_in_schema=False, status_code=204)
async def is_alive() -> None:
    """Whether this process answers at all. Asks nobody else: to restart it would mend no database."""


@router.get("/health", responses={503: {"model": Health, "description": "The database does not answer."}})
def get_health(request: Request, response: Response) -> Health:
    database: State = "ok"
    broker: State = "ok"
    try:
        with request.app.state.sessions() as session:
            session.execute(text("SELECT 1"))
    except SQLAlchemyError:
        database = "unavailable"
        response.status_code = 503
    try:
        with connect(request.app.state.settings.redis_url) as client:
            client.ping()
    except (redis.RedisError, ValueError):
        broker = "unavailable"
    artifacts: State = "ok" if request.app.state.store_probe.answers() else "unavailable"
    status: Literal["ok", "degraded", "unavailable"] = "ok"
    if database != "ok":
        status = "unavailable"
    elif "unavailable" in (broker, artifacts):
        status = "degraded"
    return Health(status=status, database=database, redis=broker, artifacts=artifacts)
