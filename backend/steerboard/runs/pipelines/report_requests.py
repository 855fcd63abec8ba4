"""How reports about a pipeline are read and computed for requests: of its sweep, and of its rounds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from fastapi import Request
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from steerboard.accounts.access import Credentials, identify, require, visible_project
from steerboard.platform.concurrency import in_turn, slot_for
from steerboard.platform.database import transaction
from steerboard.runs.pipelines.service import get_pipeline
from steerboard.runs.tables import Pipeline

Facts = TypeVar("Facts")
Report = TypeVar("Report")


def facts_by(
    read: Callable[[Session, Pipeline], Facts],
) -> Callable[[Request, str, str, Credentials], Awaitable[Facts]]:
    """A dependency: what `read` finds of the pipeline in the path, for those who may read it."""

    def look_up(request: Request, project: str, pipeline: str, credentials: Credentials) -> Facts:
        with transaction(request.app.state.sessions) as session:
            row, scopes = visible_project(session, identify(request, session, credentials), project)
            require(scopes, "read")
            return read(session, get_pipeline(session, row, pipeline))

    async def facts(request: Request, project: str, pipeline: str, credentials: Credentials) -> Facts:
        return await in_turn(request, look_up, request, project, pipeline, credentials)

    return facts


async def computed(request: Request, report: Callable[[Facts], Report], facts: Facts) -> Report:
    """Computes the report without a turn at the database, as the reports of evaluations."""
    async with slot_for(request, "computing"):
        return await run_in_threadpool(report, facts)
