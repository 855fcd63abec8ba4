"""The report of an evaluation over HTTP."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from functools import partial
from typing import Annotated

from fastapi import Depends, Query, Request, Response
from fastapi.responses import HTMLResponse
from fastapi.security import HTTPAuthorizationCredentials
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from steerboard.accounts.access import Credentials, identify, require, visible_project
from steerboard.accounts.http.routes import Router
from steerboard.accounts.tables import Project
from steerboard.evaluation import lookup
from steerboard.evaluation.report import assembly
from steerboard.evaluation.report.document.contents import document_of
from steerboard.evaluation.report.document.pdf import pdf_of
from steerboard.evaluation.report.sections.methods import against
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.concurrency import in_turn, slot_for
from steerboard.platform.database import transaction
from steerboard.platform.http.errors import problems
from steerboard.platform.kept_results import KeptResults
from steerboard.sharing.html import POLICY, page_of
from steerboard_contracts.report.evaluation import EvaluationReport

router = Router(prefix="/evaluations", tags=["evaluations"])


async def _report_of(
    request: Request, project: str, evaluation: str, credentials: Credentials
) -> tuple[Project, uuid.UUID]:
    """A dependency, so that who may not read hears that, and not what is wrong with a body."""
    return await in_turn(request, _look_up, request, credentials, project, evaluation)


ReportOf = Annotated[tuple[Project, uuid.UUID], Depends(_report_of)]

Baseline = Annotated[str | None, Query(description="The entrant that the others are compared with.")]


_PDFS: KeptResults[bytes] = KeptResults(16)


class PdfResponse(Response):
    media_type = "application/pdf"


@router.get("/{evaluation}/report", responses=problems(404))
async def evaluation_report(
    request: Request,
    target: ReportOf,
    baseline: Baseline = None,
) -> EvaluationReport:
    """Every figure with its n and interval. Computed once for each version of the evaluation; it may take seconds."""
    return await _shown(request, target[1], baseline)


@router.get("/{evaluation}/report.html", response_class=HTMLResponse, responses=problems(404))
async def report_page(request: Request, target: ReportOf, baseline: Baseline = None) -> Response:
    """The report as one HTML file that needs nothing else: no scripts, and a style for printing."""
    document = document_of(await _shown(request, target[1], baseline))
    page = await run_in_threadpool(page_of, document)
    return Response(page, media_type="text/html; charset=utf-8", headers=_download(document.title, "html"))


@router.get("/{evaluation}/report.pdf", response_class=PdfResponse, responses=problems(404))
async def report_pdf(request: Request, target: ReportOf, baseline: Baseline = None) -> Response:
    """The same as a PDF."""
    report = await _shown(request, target[1], baseline)
    document = document_of(report)
    async with slot_for(request, "computing"):
        made = await run_in_threadpool(_PDFS.get, _hash_of(report), lambda: pdf_of(document))
    return PdfResponse(made, headers=_download(document.title, "pdf"))


async def _shown(request: Request, evaluation_id: uuid.UUID, baseline: str | None) -> EvaluationReport:
    report = await read_report(request, evaluation_id)
    return report if baseline is None else against(report, baseline)


def _hash_of(report: EvaluationReport) -> bytes:
    return hashlib.sha256(report.model_dump_json().encode()).digest()


def _download(name: str, ending: str) -> dict[str, str]:
    """Names of evaluations are safe in headers. Opened in the browser, the file may still load and run nothing."""
    return {
        "Content-Disposition": f'attachment; filename="{name}-report.{ending}"',
        "Content-Security-Policy": POLICY,
    }


def _look_up(
    request: Request, credentials: HTTPAuthorizationCredentials | None, project: str, evaluation: str
) -> tuple[Project, uuid.UUID]:
    def find(session: Session, owner: Project) -> Evaluation:
        return lookup.get_evaluation(session, owner, evaluation)

    return look_up(request, credentials, project, find)


def look_up(
    request: Request,
    credentials: HTTPAuthorizationCredentials | None,
    project: str,
    find: Callable[[Session, Project], Evaluation],
) -> tuple[Project, uuid.UUID]:
    """Which evaluation is meant, for someone who may read it; in a separate transaction, so none is open while
    the report is computed."""
    with transaction(request.app.state.sessions) as session:
        project_row, scopes = visible_project(session, identify(request, session, credentials), project)
        require(scopes, "read")
        return project_row, find(session, project_row).id


async def make_current(request: Request, evaluation_id: uuid.UUID, *, newest: bool = True) -> None:
    """See to it that a report is kept, of the evaluation's newest version or of any."""
    sessions = request.app.state.sessions
    if not await in_turn(request, partial(assembly.is_kept, sessions, evaluation_id, newest=newest)):
        await read_report(request, evaluation_id)


async def read_report(request: Request, evaluation_id: uuid.UUID) -> EvaluationReport:
    """It is computed without a turn at the database: that takes a core for seconds."""
    sessions = request.app.state.sessions
    kept = await in_turn(request, assembly.kept, sessions, evaluation_id)
    if kept is None:
        async with slot_for(request, "computing"):
            kept = await in_turn(request, assembly.kept, sessions, evaluation_id)
            if kept is None:
                kept = await run_in_threadpool(assembly.compute, sessions, evaluation_id)
    return kept
