"""The playground over HTTP: comparisons and control curves. Reading needs `read`, generating `run`."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Request
from fastapi.responses import StreamingResponse
from sqlalchemy import select

from steerboard.accounts.access import Access, AccessTo, Credentials, Db, audit
from steerboard.accounts.http.event_stream import may_read
from steerboard.accounts.http.routes import Router
from steerboard.platform.http.errors import problems
from steerboard.platform.http.paging import Page, paginate
from steerboard.playground import curves, service, stream
from steerboard.playground.schemas import ComparisonIn, ComparisonOut, CurveIn, CurveOut
from steerboard.playground.shared_page import page_of_answers
from steerboard.playground.tables import Comparison, Curve
from steerboard.sharing.links import create_frozen_link
from steerboard.sharing.schemas import ShareLinkCreate, ShareLinkCreated

router = Router(prefix="/playground", tags=["playground"])

Reader = Annotated[Access, Depends(AccessTo("read"))]
Runner = Annotated[Access, Depends(AccessTo("run"))]
Writer = Annotated[Access, Depends(AccessTo("write"))]
Limit = Annotated[int, Query(ge=1, le=200)]


def _lease(request: Request) -> float:
    return float(request.app.state.settings.lease_seconds)


Lease = Annotated[float, Depends(_lease)]


@router.post("/comparisons", status_code=201, responses=problems(404, 422))
def start_comparison(body: ComparisonIn, session: Db, access: Runner, lease: Lease) -> ComparisonOut:
    """Ask several columns the same prompt; follow the answers at `/stream`. An answer that an earlier comparison
    already has is copied immediately."""
    made = service.create_comparison(session, access.project, body, access.actor)
    out = service.comparisons_out(session, [made], lease)[0]
    detail = {"columns": [column.name for column in out.columns], "reward": made.reward_model_name}
    audit(session, access, "playground.compare", f"comparison {made.id}", detail)
    return out


@router.get("/comparisons", responses=problems(404, 422))
def list_comparisons(
    session: Db, access: Reader, lease: Lease, cursor: str | None = None, limit: Limit = 20
) -> Page[ComparisonOut]:
    """Newest first, with their answers."""
    return paginate(
        session,
        select(Comparison).where(Comparison.project_id == access.project.id, ~Comparison.blind),
        Comparison.id,
        lambda comparison: service.comparisons_out(session, [comparison], lease)[0],
        cursor=cursor,
        limit=limit,
        convert_all=lambda page: service.comparisons_out(session, page, lease),
    )


@router.get("/comparisons/{comparison}", responses=problems(404))
def get_comparison(comparison: str, session: Db, access: Reader, lease: Lease) -> ComparisonOut:
    """A comparison as it is now."""
    row = service.get_comparison(session, access.project, comparison)
    return service.comparisons_out(session, [row], lease)[0]


@router.post("/comparisons/{comparison}/cancel", responses=problems(404, 409))
def cancel_comparison(comparison: str, session: Db, access: Runner, lease: Lease) -> ComparisonOut:
    """End all open answers immediately; their text so far is kept."""
    row = service.get_comparison(session, access.project, comparison)
    service.cancel(session, row)
    audit(session, access, "playground.cancel", f"comparison {row.id}")
    return service.comparisons_out(session, [row], lease)[0]


@router.post("/comparisons/{comparison}/share-links", status_code=201, responses=problems(404, 409, 422))
def share_answers(
    comparison: str, body: ShareLinkCreate, session: Db, access: Writer, lease: Lease
) -> ShareLinkCreated:
    """Everyone who has the link can read the prompt and the answers with their scores, settings and rewards, without an
    account. Its address is in this answer and never again."""
    row = service.get_comparison(session, access.project, comparison)
    page = page_of_answers(service.comparisons_out(session, [row], lease)[0])
    return create_frozen_link(session, access, "answers", page, body.expires_in_days)


@router.get("/comparisons/{comparison}/stream", response_class=StreamingResponse, responses=problems(404))
def stream_comparison(
    request: Request, comparison: str, session: Db, access: Reader, credentials: Credentials
) -> StreamingResponse:
    """Server-sent events. `answer`: an answer without its text, `at` (an offset in UTF-16 code units) and the `text`
    that follows what was known up to there. A reader that connects gets everything so far; `end` when all have
    ended. The stream ends after ten minutes; connect again then."""
    row = service.get_comparison(session, access.project, comparison)
    project_id = access.project.id
    body = stream.follow(request.app, row.id, lambda: may_read(request, credentials, project_id))
    return StreamingResponse(body, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


@router.post("/curves", status_code=201, responses=problems(404, 422))
def start_curve(body: CurveIn, session: Db, access: Runner, lease: Lease) -> CurveOut:
    """Measure which rewards a policy achieves at requested scores. Comparisons have priority."""
    made = curves.create_curve(session, access.project, body, access.actor)
    detail = {"model": made.model_name, "reward": made.reward_model_name, "data": made.dataset_name}
    audit(session, access, "playground.curve", f"curve {made.id}", detail)
    return curves.curves_out(session, [made], lease)[0]


@router.get("/curves", responses=problems(404, 422))
def list_curves(
    session: Db,
    access: Reader,
    lease: Lease,
    model: Annotated[str | None, Query(description="Id or name.")] = None,
    cursor: str | None = None,
    limit: Limit = 20,
) -> Page[CurveOut]:
    """Newest first."""
    query = select(Curve).where(Curve.project_id == access.project.id)
    if model is not None:
        query = query.where(Curve.model_id == curves.model_filter(session, access.project, model))
    return paginate(
        session,
        query,
        Curve.id,
        lambda curve: curves.curves_out(session, [curve], lease)[0],
        cursor=cursor,
        limit=limit,
        convert_all=lambda page: curves.curves_out(session, page, lease),
    )


@router.get("/curves/{curve}", responses=problems(404))
def get_curve(curve: str, session: Db, access: Reader, lease: Lease) -> CurveOut:
    """A curve as it is now; `playground.curve` events of the project say when it has grown."""
    return curves.curves_out(session, [curves.get_curve(session, access.project, curve)], lease)[0]


@router.post("/curves/{curve}/cancel", responses=problems(404, 409))
def cancel_curve(curve: str, session: Db, access: Runner, lease: Lease) -> CurveOut:
    """Cancel a curve. Its points so far are kept."""
    row = curves.get_curve(session, access.project, curve)
    curves.cancel(session, row)
    audit(session, access, "playground.cancel", f"curve {row.id}")
    session.flush()
    session.refresh(row)
    return curves.curves_out(session, [row], lease)[0]
