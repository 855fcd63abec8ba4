"""What a pipeline's sweep found, over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, FastAPI, Request
from starlette.concurrency import run_in_threadpool

from steerboard.accounts.access import Credentials, identify, require, visible_project
from steerboard.accounts.http.routes import Router
from steerboard.evaluation.sweeps.loader import SweepFacts, read_sweep
from steerboard.evaluation.sweeps.sweep_report import sweep_report
from steerboard.platform.concurrency import in_slot
from steerboard.platform.database import transaction
from steerboard.platform.http.errors import problems
from steerboard.runs.pipelines.service import get_pipeline
from steerboard_contracts.report.sweep import SweepReport

router = Router(prefix="/pipelines", tags=["pipelines"])


async def _asked(request: Request, project: str, pipeline: str, credentials: Credentials) -> SweepFacts:
    return await in_slot(request.app, _read, request, project, pipeline, credentials)


@router.get("/{pipeline}/sweep", responses=problems(404))
async def get_sweep(request: Request, facts: Annotated[SweepFacts, Depends(_asked)]) -> SweepReport:
    """The variants of a pipeline's sweep with their held-out figures, the best, and which others are within noise of
    it. 404 `no_sweep` where the recipe has none."""
    return await _computed(request.app, facts)


def _read(request: Request, project: str, pipeline: str, credentials: Credentials) -> SweepFacts:
    with transaction(request.app.state.sessions) as session:
        found, scopes = visible_project(session, identify(request, session, credentials), project)
        require(scopes, "read")
        return read_sweep(session, get_pipeline(session, found, pipeline))


async def _computed(app: FastAPI, facts: SweepFacts) -> SweepReport:
    """One at a time, without a turn at the database, as the reports of evaluations."""
    async with app.state.reports:
        return await run_in_threadpool(sweep_report, facts)
