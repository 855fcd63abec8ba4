"""What a link shows to everyone who has it, without an account."""

from __future__ import annotations

import uuid

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse
from starlette.concurrency import run_in_threadpool

from steerboard.accounts import attempts
from steerboard.accounts.http.routes import Router
from steerboard.evaluation.report.api import read_report
from steerboard.evaluation.report.blinding import blind_salt, blinded
from steerboard.evaluation.report.document.contents import document_of
from steerboard.platform.concurrency import in_turn
from steerboard.platform.database import transaction
from steerboard.platform.http.errors import NotFound, TooManyAttempts, problems
from steerboard.sharing import links
from steerboard.sharing.frozen import FrozenPage, from_json
from steerboard.sharing.html import POLICY, frozen_page_of, page_of
from steerboard_contracts.report.evaluation import EvaluationReport

router = Router(tags=["projects"])

_HEADERS = {
    "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Robots-Tag": "noindex, nofollow",
}
_GONE = (
    '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="robots" content="noindex">'
    '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Steerboard</title></head>'
    "<body><h1>There is nothing here</h1><p>The link is wrong, has expired or was revoked. Ask the person who sent "
    "it for another one.</p></body></html>\n"
)


@router.get("/shared/{code}", response_class=HTMLResponse, responses=problems(404, 429))
async def shared_page(code: str, request: Request) -> Response:
    """The page behind a link, as one HTML page that only reads: the current report of an evaluation, or runs or answers
    as they were when the link was made. A link that is unknown, expired or revoked is not found; an address that tries
    many of those has to wait."""
    shown = await in_turn(request, _look_up, request.app, code)
    if shown is None:
        await in_turn(request, _note_miss, request)
        return _gone()
    if isinstance(shown, FrozenPage):
        return HTMLResponse(await run_in_threadpool(frozen_page_of, shown), headers=_HEADERS)
    try:
        report = await read_report(request, shown)
    except NotFound:  # deleted meanwhile
        return _gone()
    # Asked after the report was read, so that a campaign that has just begun is not missed.
    salt = await in_turn(request, _salt, request.app, shown)
    return HTMLResponse(await run_in_threadpool(_report_page, report, salt), headers=_HEADERS)


def _look_up(app: FastAPI, code: str) -> FrozenPage | uuid.UUID | None:
    """The frozen page, or the id of the evaluation whose report it is."""
    with transaction(app.state.sessions) as session:
        link = links.link_behind(session, code)
        if link is None:
            return None
        return from_json(link.page) if link.page is not None else link.evaluation_id


def _salt(app: FastAPI, evaluation_id: uuid.UUID) -> str | None:
    with transaction(app.state.sessions) as session:
        return blind_salt(session, evaluation_id)


def _report_page(report: EvaluationReport, salt: str | None) -> str:
    return page_of(document_of(report) if salt is None else document_of(blinded(report, salt), blind=True))


def _gone() -> Response:
    return HTMLResponse(_GONE, status_code=404, headers=_HEADERS)


def _note_miss(request: Request) -> None:
    """Only misses count, apart from those of passwords. Raises `TooManyAttempts`."""
    address = attempts.counted_address(request.client.host if request.client else None)
    try:
        attempts.begin(request.app.state.sessions, "shared page", f"shared {address}", signed_in=True)
    except TooManyAttempts as error:
        raise TooManyAttempts(
            "Too many links that do not work.",
            hint="Wait for the number of seconds in the Retry-After header. A link that works is answered meanwhile.",
            extra=error.extra,
        ) from None
