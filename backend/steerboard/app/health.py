"""Routes for probes, without a token: `/api/v1/system/live` (does the process answer) and `/api/v1/system/health`
(which part is ill, and nothing else)."""

from __future__ import annotations

import asyncio
from typing import Literal

from fastapi import Request, Response
from pydantic import BaseModel
from sqlalchemy import URL, create_engine, text
from sqlalchemy.pool import NullPool

from steerboard.accounts.http.routes import Router
from steerboard.app.probes import Probe
from steerboard.platform.events.redis_url import connect
from steerboard.platform.settings import Settings
from steerboard.platform.storage.disk import need_room
from steerboard.platform.storage.from_url import open_storage

router = Router(prefix="/system", tags=["system"])

State = Literal["ok", "unavailable"]


class Health(BaseModel):
    """`ok` when requests can be served. Without Redis, only wake-ups and live updates are late. Without the artifact
    store, only requests for files of models and imports fail; without room on the disk, `full`, only large uploads."""

    status: Literal["ok", "degraded", "unavailable"]
    database: State
    redis: State
    artifacts: State
    disk: Literal["ok", "full"]


@router.get("/live", include_in_schema=False, status_code=204)
async def is_alive() -> None:
    """Whether this process answers at all. Checks nothing else: restarting it would not fix a database."""


@router.get("/health", responses={503: {"model": Health, "description": "The database does not answer."}})
async def get_health(request: Request, response: Response) -> Health:
    probes: dict[str, Probe] = request.app.state.probes
    well = dict(zip(probes, await asyncio.gather(*(probe.answers() for probe in probes.values())), strict=True))
    if not well["database"]:
        response.status_code = 503
    disk: Literal["ok", "full"] = "ok" if well.pop("disk") else "full"
    states: dict[str, State] = {name: "ok" if answers else "unavailable" for name, answers in well.items()}
    return Health(
        status="unavailable" if not well["database"] else "ok" if all(well.values()) and disk == "ok" else "degraded",
        disk=disk,
        **states,
    )


def make_probes(settings: Settings, database: URL) -> dict[str, Probe]:
    """One probe for each service. They have connections of their own: health reports on the service, not on our
    load."""
    engine = create_engine(database, poolclass=NullPool, connect_args={"connect_timeout": 2})

    def ask_database() -> None:
        with engine.connect() as connection:
            connection.execute(text("SELECT 1"))

    def ask_redis() -> None:
        with connect(settings.redis_url) as client:
            client.ping()

    store = open_storage(settings.artifact_url, patient=False)
    return {
        "database": Probe(ask_database),
        "redis": Probe(ask_redis),
        # A store on the network charges for each question.
        "artifacts": Probe(store.check, keep_seconds=15.0),
        "disk": Probe(lambda: need_room(settings)),
    }
