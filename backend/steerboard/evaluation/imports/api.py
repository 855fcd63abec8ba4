"""Answers and judgments of other projects, in and out, over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Request
from starlette.datastructures import FormData

from steerboard.accounts.access import Access, AccessTo, Db
from steerboard.accounts.http.routes import Router
from steerboard.datasets.imports.execution.requests import import_in_process
from steerboard.datasets.imports.uploads import Form, Write, checked, form_body, uploaded
from steerboard.evaluation.entrants.responses import entrants_of
from steerboard.evaluation.entrants.service import get_entrant
from steerboard.evaluation.imports import exports
from steerboard.evaluation.imports.schemas import AnswersForm, AnswersImported, JudgmentsForm, JudgmentsImported
from steerboard.evaluation.judges.service import get_judge
from steerboard.evaluation.lookup import get_evaluation
from steerboard.platform.concurrency import in_pool
from steerboard.platform.http import downloads
from steerboard.platform.http.downloads import Download
from steerboard.platform.http.errors import InvalidRequest, NotFound, problems
from steerboard_figures.formats.detection import AnswerFormat, JudgmentFormat
from steerboard_files.records import Source

router = Router(prefix="/evaluations/{evaluation}", tags=["evaluations"])

Read = Annotated[Access, Depends(AccessTo("read"))]


def _file(form: FormData) -> Source:
    source = uploaded(form)
    if source is None:
        raise InvalidRequest("the form has no file", hint="Send it as `file`.")
    return source


@router.post(
    "/answers",
    status_code=201,
    responses=problems(404, 409, 413),
    openapi_extra=form_body(AnswersForm, file_needed=True),
)
@in_pool("processes")
def post_answers(request: Request, access: Write, form: Form, evaluation: str) -> AnswersImported:
    """Import external answers (FastChat, AlpacaEval, Arena-Hard; JSON lines or an array, also gzipped). A row is
    matched to a prompt by its `question_id` or `uid`, otherwise by its text, otherwise by its place. Rows that match no
    prompt are counted and named."""
    source, given = _file(form), checked(AnswersForm, form)
    return AnswersImported.model_validate(import_in_process(request, access, "answers", given, source, into=evaluation))


@router.post(
    "/judgments",
    status_code=201,
    responses=problems(404, 409, 413),
    openapi_extra=form_body(JudgmentsForm, file_needed=True),
)
@in_pool("processes")
def post_judgments(request: Request, access: Write, form: Form, evaluation: str) -> JudgmentsImported:
    """Import external judgments as a judge. If several are about one item, the newest counts; the others are
    superseded."""
    source, given = _file(form), checked(JudgmentsForm, form)
    answer = import_in_process(request, access, "judgments", given, source, into=evaluation)
    return JudgmentsImported.model_validate(answer)


@router.get("/answers", response_class=Download, responses=problems(404))
def get_answers(
    session: Db,
    access: Read,
    evaluation: str,
    format: AnswerFormat = "fastchat",
    entrant: Annotated[str | None, Query(description="By name or id; all of them by default.")] = None,
) -> Download:
    """A file that FastChat, AlpacaEval or Arena-Hard reads, and that can be imported again."""
    stored = get_evaluation(session, access.project, evaluation)
    chosen = get_entrant(session, stored, entrant) if entrant is not None else None
    if entrant is not None and chosen is None:
        known = ", ".join(listed.name for listed in entrants_of(session, stored))
        raise NotFound(f"there is no entrant {entrant!r}; there are {known or 'none'}", code="unknown_entrant")
    rows = exports.answer_rows(session, stored, format, chosen)
    return _download(rows, f"{stored.name}.{chosen.name if chosen else 'answers'}", format)


@router.get("/judges/{judge}/judgments", response_class=Download, responses=problems(404))
def get_judgments(
    session: Db, access: Read, evaluation: str, judge: str, format: JudgmentFormat | None = None
) -> Download:
    """All verdicts of a judge in the format of its style, that can be imported again."""
    stored = get_evaluation(session, access.project, evaluation)
    chosen = get_judge(session, stored, judge)
    written, rows = exports.judgment_rows(session, stored, chosen, format)
    return _download(rows, f"{stored.name}.{chosen.name}", written)


def _download(rows: exports.Rows, name: str, format: str) -> Download:
    as_array = format == "alpaca_eval"
    media, ending = ("application/json", "json") if as_array else ("application/x-ndjson", "jsonl")
    return downloads.made(lambda file: exports.write(rows, file, as_array), f"{name}.{format}.{ending}", media)
