"""Links to a report over HTTP: made and revoked by those who may write, read by everyone who has one."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated

from fastapi import Depends, FastAPI, Request, Response
from fastapi.responses import HTMLResponse
from starlette.concurrency import run_in_threadpool

from steerboard.accounts import attempts
from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.evaluation.lookup import get_evaluation
from steerboard.evaluation.report import links
from steerboard.evaluation.report.api import read_report
from steerboard.evaluation.report.blinding import blind_salt, blinded
from steerboard.evaluation.report.document.contents import document_of
from steerboard.evaluation.report.document.page import POLICY, page_of
from steerboard.evaluation.report.schemas import ReportLinkCreate, ReportLinkCreated, ReportLinkOut
from steerboard.platform.concurrency import in_turn
from steerboard.platform.database import transaction
from steerboard.platform.http.errors import NotFound, TooManyAttempts, problems
from steerboard_contracts.report.evaluation import EvaluationReport

router = Router(prefix="/evaluations/{evaluation}/report-links", tags=["evaluations"])
root_router = Router(tags=["evaluations"])

Read = Annotated[Access, Depends(AccessTo("read"))]
Write = Annotated[Access, Depends(AccessTo("write"))]

_HEADERS = {
    "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Robots-Tag": "noindex, nofollow",
}
_GONE = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="robots" content="noindex">'
    '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Steerboard</title></head>'
    "<body><h1>There is no report here</h1><p>The link is wrong, has expired or was revoked. Ask the person who sent "
    "it for another one.</p></body></html>\n"
)


@router.get("", responses=problems(404))
def list_report_links(evaluation: str, session: Db, access: Read) -> list[ReportLinkOut]:
    """The links that work, the newest first."""
    shared = links.links_of(session, get_evaluation(session, access.project, evaluation))
    return [ReportLinkOut.model_validate(link) for link in shared]


@router.post("", status_code=201, responses=problems(404, 409))
def create_report_link(evaluation: str, body: ReportLinkCreate, session: Db, access: Write) -> ReportLinkCreated:
    """Everyone who has the link can read the report, without an account. Its address is in this answer and never
    again. While a campaign is not closed, the report that it shows has letters for entrants."""
    stored = get_evaluation(session, access.project, evaluation)
    link, code = links.create(session, stored, dt.timedelta(days=body.expires_in_days), access.actor)
    target = f"evaluation {stored.name} {stored.id}"
    audit(session, access, "report_link.create", target, {"link": str(link.id), "days": body.expires_in_days})
    return ReportLinkCreated(**ReportLinkOut.model_validate(link).model_dump(), path=f"/shared/{code}")


@router.delete("/{link}", status_code=204, responses=problems(404))
def revoke_report_link(evaluation: str, link: uuid.UUID, session: Db, access: Write) -> None:
    """It stops working with this answer."""
    stored = get_evaluation(session, access.project, evaluation)
    revoked = links.revoke(session, stored, link)
    audit(
        session,
        access,
        "report_link.revoke",
        f"evaluation {stored.name} {stored.id}",
        {"link": str(revoked.id)},
    )


@root_router.get("/shared/{code}", response_class=HTMLResponse, responses=problems(404, 429))
async def shared_report(code: str, request: Request) -> Response:
    """The report behind a link, as one HTML page that only reads. A link that is unknown, expired or revoked is not
    found; an address that tries many of those has to wait."""
    app = request.app
    evaluation_id = await in_turn(request, _look_up, app, code)
    if evaluation_id is None:
        await in_turn(request, _note_miss, request)
        return _gone()
    try:
        report = await read_report(request, evaluation_id)
    except NotFound:  # deleted meanwhile
        return _gone()
    # Asked after the report was read, so that a campaign that has just begun is not missed.
    salt = await in_turn(request, _salt, app, evaluation_id)
    return HTMLResponse(await run_in_threadpool(_page, report, salt), headers=_HEADERS)


def _look_up(app: FastAPI, code: str) -> uuid.UUID | None:
    with transaction(app.state.sessions) as session:
        return links.evaluation_behind(session, code)


def _salt(app: FastAPI, evaluation_id: uuid.UUID) -> str | None:
    with transaction(app.state.sessions) as session:
        return blind_salt(session, evaluation_id)


def _page(report: EvaluationReport, salt: str | None) -> str:
    return page_of(document_of(report) if salt is None else document_of(blinded(report, salt), blind=True))


def _gone() -> Response:
    return HTMLResponse(_GONE, status_code=404, headers=_HEADERS)


def _note_miss(request: Request) -> None:
    """Only misses count, apart from those of passwords. Raises `TooManyAttempts`."""
    address = attempts.counted_address(request.client.host if request.client else None)
    try:
        attempts.begin(request.app.state.sessions, "shared report", f"shared {address}", signed_in=True)
    except TooManyAttempts as error:
        raise TooManyAttempts(
            "Too many links that do not work.",
            hint="Wait for the number of seconds in the Retry-After header. A link that works is answered meanwhile.",
            extra=error.extra,
        ) from None
