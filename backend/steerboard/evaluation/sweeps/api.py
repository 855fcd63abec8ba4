"""What a pipeline's sweep found, over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from steerboard.accounts.http.routes import Router
from steerboard.evaluation.sweeps.loader import SweepFacts, read_sweep
from steerboard.evaluation.sweeps.sweep_report import sweep_report
from steerboard.platform.http.errors import problems
from steerboard.runs.pipelines.report_requests import computed, facts_by
from steerboard_contracts.report.sweep import SweepReport

router = Router(prefix="/pipelines", tags=["pipelines"])


@router.get("/{pipeline}/sweep", responses=problems(404))
async def get_sweep(request: Request, facts: Annotated[SweepFacts, Depends(facts_by(read_sweep))]) -> SweepReport:
    """The variants of a pipeline's sweep with their held-out figures, the best, and which others are within noise of
    it. 404 `no_sweep` where the recipe has none."""
    return await computed(request, sweep_report, facts)
