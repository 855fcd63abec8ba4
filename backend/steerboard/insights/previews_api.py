"""What a run would learn from and cost, before it is started, and how long a pipeline will still take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, Request

from steerboard.accounts.access import Access, AccessTo, Db
from steerboard.accounts.http.routes import Router
from steerboard.insights import estimates, outlook, previews
from steerboard.insights.schemas import (
    RunEstimate,
    SelectionPreview,
    SelectionPreviewIn,
    WeightsPreview,
    WeightsPreviewIn,
)
from steerboard.platform.http.errors import problems
from steerboard.runs.pipelines import service as pipelines
from steerboard.runs.schemas.requests import RunWork
from steerboard_contracts.methods import methods

router = Router(tags=["runs"])

Reader = Annotated[Access, Depends(AccessTo("read"))]


@router.post("/previews/selection", responses=problems(404, 422))
def preview_selection(body: SelectionPreviewIn, session: Db, access: Reader) -> SelectionPreview:
    """The training rows above a threshold, and those nearest to it on both sides."""
    return previews.selection(session, access.project, body.data, body.threshold)


@router.post("/previews/weights", responses=problems(404, 422))
def preview_weights(body: WeightsPreviewIn, session: Db, access: Reader) -> WeightsPreview:
    """The weights that the training rows would get by their rewards."""
    return previews.weights(session, access.project, body)


# The same by the method's name, as they were called when there was one method of each kind.
_BY_KIND: dict[str, Callable[..., Any]] = {"selection": preview_selection, "weights": preview_weights}
for _method in methods().values():
    if _method.preview is not None:
        _path = f"/previews/{_method.name.replace('_', '-')}"
        router.post(_path, responses=problems(404, 422), include_in_schema=False)(_BY_KIND[_method.preview.kind])


@router.post("/runs/estimate", responses=problems(404, 422))
def estimate_run(body: RunWork, session: Db, access: Reader, request: Request) -> RunEstimate:
    """What a run would cost, estimated from earlier ones of its kind and method (null where these do not suffice), and
    how much
    memory of a device it would need."""
    return estimates.estimate(session, request.app.state.store, access.project, body)


@router.get("/pipelines/{pipeline}/outlook", responses=problems(404))
def show_outlook(pipeline: str, session: Db, access: Reader) -> outlook.PipelineOutlook:
    """How far a pipeline is, and how long its rest will take."""
    return outlook.outlook(session, pipelines.get_pipeline(session, access.project, pipeline))
