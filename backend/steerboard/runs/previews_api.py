"""Previews for launch forms: what a run would learn from, and what it would cost. Nothing is started."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from steerboard.platform.web import Access, AccessTo, Db, problems
from steerboard.runs import estimates, previews
from steerboard.runs.preview_schemas import MleFilterPreview, MleFilterPreviewIn, RunEstimate, RwrPreview, RwrPreviewIn
from steerboard.runs.schemas import RunWork

router = APIRouter(tags=["runs"])

Reader = Annotated[Access, Depends(AccessTo("read"))]


@router.post("/previews/mle-filter", responses=problems(404, 422))
def preview_mle_filter(body: MleFilterPreviewIn, session: Db, access: Reader) -> MleFilterPreview:
    """The training rows above a threshold, and those nearest to it on both sides."""
    return previews.mle_filter(session, access.project, body.data, body.threshold)


@router.post("/previews/rwr", responses=problems(404, 422))
def preview_rwr(body: RwrPreviewIn, session: Db, access: Reader) -> RwrPreview:
    """The weights that RWR would give to the training rows."""
    return previews.rwr(session, access.project, body)


@router.post("/runs/estimate", responses=problems(404, 422))
def estimate_run(body: RunWork, session: Db, access: Reader, request: Request) -> RunEstimate:
    """What a run would cost, judged by earlier ones of its kind and method (nulls when there are none), and how much
    memory of a device it would need."""
    return estimates.estimate(session, request.app.state.store, access.project, body)
