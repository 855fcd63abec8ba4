"""The rounds of a pipeline, over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, FastAPI, Request
from starlette.concurrency import run_in_threadpool

from steerboard.accounts.access import Credentials, identify, require, visible_project
from steerboard.accounts.http.routes import Router
from steerboard.evaluation.rounds.loader import RoundsFacts, read_rounds
from steerboard.evaluation.rounds.rounds_report import rounds_report
from steerboard.platform.concurrency import in_slot
from steerboard.platform.database import transaction
from steerboard.platform.http.errors import problems
from steerboard.runs.pipelines.service import get_pipeline
from steerboard_contracts.report.rounds import RoundsReport

router = Router(prefix="/pipelines", tags=["pipelines"])


async def _asked(request: Request, project: str, pipeline: str, credentials: Credentials) -> RoundsFacts:
    return await in_slot(request.app, _read, request, project, pipeline, credentials)


@router.get("/{pipeline}/rounds", responses=problems(404))
async def get_rounds(request: Request, facts: Annotated[RoundsFacts, Depends(_asked)]) -> RoundsReport:
    """Each round of a pipeline: what was selected, how its policy answers, what the stop rule decided, and the costs.
    404 `no_rounds` where the recipe has none."""
    return await _computed(request.app, facts)


def _read(request: Request, project: str, pipeline: str, credentials: Credentials) -> RoundsFacts:
    with transaction(request.app.state.sessions) as session:
        found, scopes = visible_project(session, identify(request, session, credentials), project)
        require(scopes, "read")
        return read_rounds(session, get_pipeline(session, found, pipeline))


async def _computed(app: FastAPI, facts: RoundsFacts) -> RoundsReport:
    """One at a time, without a turn at the database, as the reports of evaluations."""
    async with app.state.reports:
        return await run_in_threadpool(rounds_report, facts)
