"""The rounds of a pipeline, over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from steerboard.accounts.http.routes import Router
from steerboard.evaluation.rounds.loader import RoundsFacts, read_rounds
from steerboard.evaluation.rounds.rounds_report import rounds_report
from steerboard.platform.http.errors import problems
from steerboard.runs.pipelines.report_requests import computed, facts_by
from steerboard_contracts.report.rounds import RoundsReport

router = Router(prefix="/pipelines", tags=["pipelines"])


@router.get("/{pipeline}/rounds", responses=problems(404))
async def get_rounds(request: Request, facts: Annotated[RoundsFacts, Depends(facts_by(read_rounds))]) -> RoundsReport:
    """Each round of a pipeline: what was selected, how its policy answers, what the stop rule decided, and the costs.
    404 `no_rounds` where the recipe has none."""
    return await computed(request, rounds_report, facts)
