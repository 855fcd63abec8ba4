"""`/api/v1/system/health`: for probes; says which part is ill and nothing else, so it needs no token."""

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
    """`ok` when requests can be served. Without Redis they can: only wake-ups and live updates come later."""

    status: Literal["ok", "degraded", "unavailable"]
    database: State
    redis: State


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
    status: Literal["ok", "degraded", "unavailable"] = "ok"
    if database != "ok":
        status = "unavailable"
    elif broker != "ok":
        status = "degraded"
    return Health(status=status, database=database, redis=broker)
