"""The report of an evaluation over HTTP."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.responses import HTMLResponse
from fastapi.security import HTTPAuthorizationCredentials
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool

from steerboard.accounts.access import Credentials, identify, require, visible_project
from steerboard.accounts.http.routes import Router
from steerboard.accounts.tables import Project
from steerboard.evaluation import lookup
from steerboard.evaluation.report import assembly
from steerboard.evaluation.report.document.blocks import Document
from steerboard.evaluation.report.document.contents import document_of
from steerboard.evaluation.report.document.page import POLICY, page_of
from steerboard.evaluation.report.document.pdf import pdf_of
from steerboard.evaluation.report.sections.methods import against
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.concurrency import in_slot
from steerboard.platform.database import transaction
from steerboard.platform.http.errors import problems
from steerboard_contracts.report.evaluation import EvaluationReport

router = Router(prefix="/evaluations", tags=["evaluations"])


async def _asked(
    request: Request, project: str, evaluation: str, credentials: Credentials
) -> tuple[Project, uuid.UUID]:
    """A dependency, so that who may not read hears that, and not what is wrong with a body."""
    return await in_slot(request.app, _look_up, request, credentials, project, evaluation)


Asked = Annotated[tuple[Project, uuid.UUID], Depends(_asked)]

Baseline = Annotated[str | None, Query(description="The entrant that the others are compared with.")]


class PdfResponse(Response):
    media_type = "application/pdf"


@router.get("/{evaluation}/report", responses=problems(404))
async def evaluation_report(
    request: Request,
    asked: Asked,
    baseline: Baseline = None,
) -> EvaluationReport:
    """Every figure with its n and interval. Computed once for each version of the evaluation; it may take seconds."""
    found = await read_report(request.app, asked[1])
    return found if baseline is None else against(found, baseline)


@router.get("/{evaluation}/report.html", response_class=HTMLResponse, responses=problems(404))
async def report_page(request: Request, asked: Asked, baseline: Baseline = None) -> Response:
    """The report as one HTML file that needs nothing else: no scripts, and a style for printing."""
    document = await _document(request.app, asked[1], baseline)
    page = await run_in_threadpool(page_of, document)
    return Response(page, media_type="text/html; charset=utf-8", headers=_download(document.title, "html"))


@router.get("/{evaluation}/report.pdf", response_class=PdfResponse, responses=problems(404))
async def report_pdf(request: Request, asked: Asked, baseline: Baseline = None) -> Response:
    """The same as a PDF."""
    document = await _document(request.app, asked[1], baseline)
    # It takes a core, like computing a report.
    async with request.app.state.reports:
        made = await run_in_threadpool(pdf_of, document)
    return PdfResponse(made, headers=_download(document.title, "pdf"))


async def _document(app: FastAPI, evaluation_id: uuid.UUID, baseline: str | None) -> Document:
    found = await read_report(app, evaluation_id)
    return document_of(found if baseline is None else against(found, baseline))


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
        found, scopes = visible_project(session, identify(request, session, credentials), project)
        require(scopes, "read")
        return found, find(session, found).id


async def read_report(app: FastAPI, evaluation_id: uuid.UUID) -> EvaluationReport:
    """One is computed at a time, without a turn at the database: it takes a core for seconds."""
    sessions = app.state.sessions
    kept = await in_slot(app, assembly.kept, sessions, evaluation_id)
    if kept is None:
        async with app.state.reports:
            kept = await in_slot(app, assembly.kept, sessions, evaluation_id)
            if kept is None:
                kept = await run_in_threadpool(assembly.compute, sessions, evaluation_id)
    return kept
