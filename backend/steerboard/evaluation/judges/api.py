"""Judges over HTTP. Reading needs `read`; starting one, or asking again, `run`."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Response
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.evaluation.entrants.responses import entrants_of
from steerboard.evaluation.events import changed
from steerboard.evaluation.judge_tables import Judge, Verdict
from steerboard.evaluation.judges import service as judges
from steerboard.evaluation.judges.presenters import judges_out, verdict_out
from steerboard.evaluation.judges.schemas import (
    JudgeChange,
    JudgeEstimate,
    JudgeIn,
    JudgeOut,
    Judges,
    VerdictOut,
    VerdictStatus,
)
from steerboard.evaluation.lookup import get_evaluation
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.http.errors import problems
from steerboard.platform.http.paging import Page, paginate

router = Router(prefix="/evaluations/{evaluation}/judges", tags=["evaluations"])

Read = Annotated[Access, Depends(AccessTo("read"))]
Write = Annotated[Access, Depends(AccessTo("write"))]
Run = Annotated[Access, Depends(AccessTo("run"))]


@router.get("", responses=problems(404))
def list_judges(evaluation: str, session: Db, access: Read) -> Judges:
    """Oldest first, with their counts of verdicts and their cost."""
    return Judges(items=judges_out(session, get_evaluation(session, access.project, evaluation)))


@router.post("", status_code=201, responses=problems(404, 409))
def create_judge(
    evaluation: str,
    body: JudgeIn,
    response: Response,
    session: Db,
    access: Run,
    dry_run: Annotated[bool, Query(description="Start nothing; only report how many requests it would take.")] = False,
) -> JudgeOut | JudgeEstimate:
    """Ask a judge. Its run waits for answers that are still being generated."""
    stored = get_evaluation(session, access.project, evaluation)
    if dry_run:
        response.status_code = 200
        return judges.estimate(session, access.project, stored, body)
    judge = judges.create_judge(session, access.project, stored, body, access.actor)
    detail = {"style": judge.style, "model": judge.model} | ({"endpoint": body.endpoint} if body.endpoint else {})
    audit(session, access, "judge.create", _target(stored, judge), detail)
    changed(session, stored, "judge")
    return _out(session, stored, judge)


@router.get("/{judge}", responses=problems(404))
def get_judge(evaluation: str, judge: str, session: Db, access: Read) -> JudgeOut:
    stored = get_evaluation(session, access.project, evaluation)
    return _out(session, stored, judges.get_judge(session, stored, judge))


@router.patch("/{judge}", responses=problems(400, 404))
def change_judge(evaluation: str, judge: str, body: JudgeChange, session: Db, access: Run) -> JudgeOut:
    """Change a judge's budget from its next run on; `retry` asks for what the former one left."""
    stored = get_evaluation(session, access.project, evaluation)
    changing = judges.get_judge(session, stored, judge)
    judges.change_judge(session, changing, body)
    session.flush()
    audit(session, access, "judge.change", _target(stored, changing), {"budget": body.budget})
    return _out(session, stored, changing)


@router.delete("/{judge}", status_code=204, responses=problems(404, 409))
def delete_judge(evaluation: str, judge: str, session: Db, access: Write) -> None:
    """Delete a judge with its verdicts. Paid answers stay cached, so the same judge again costs nothing."""
    stored = get_evaluation(session, access.project, evaluation)
    gone = judges.get_judge(session, stored, judge)
    audit(session, access, "judge.delete", _target(stored, gone))
    judges.delete_judge(session, gone)
    changed(session, stored, "judge")


@router.post("/{judge}/retry", responses=problems(404, 409))
def retry_judge(evaluation: str, judge: str, session: Db, access: Run) -> JudgeOut:
    """Retry what ended in an error. Verdicts stay as they are."""
    stored = get_evaluation(session, access.project, evaluation)
    again = judges.get_judge(session, stored, judge)
    judges.retry(session, access.project, stored, again, access.actor)
    audit(session, access, "judge.retry", _target(stored, again))
    changed(session, stored, "judge")
    return _out(session, stored, again)


@router.get("/{judge}/verdicts", responses=problems(404))
def list_verdicts(
    evaluation: str,
    judge: str,
    session: Db,
    access: Read,
    after: Annotated[str | None, Query(description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    status: VerdictStatus | None = None,
    position: Annotated[int | None, Query(ge=0, description="Position of the prompt.")] = None,
) -> Page[VerdictOut]:
    """The verdicts in the order in which they came, with superseded ones."""
    stored = get_evaluation(session, access.project, evaluation)
    query = select(Verdict).where(Verdict.judge_id == judges.get_judge(session, stored, judge).id)
    if status is not None:
        query = query.where(Verdict.status == status)
    if position is not None:
        query = query.where(Verdict.position == position)
    names = {entrant.id: entrant.name for entrant in entrants_of(session, stored)}
    return paginate(
        session,
        query,
        Verdict.id,
        lambda row: verdict_out(row, names),
        cursor=after,
        limit=limit,
        newest_first=False,
    )


def _out(session: Session, evaluation: Evaluation, judge: Judge) -> JudgeOut:
    return judges_out(session, evaluation, judge)[0]


def _target(evaluation: Evaluation, judge: Judge) -> str:
    return f"judge {judge.name} {judge.id} of evaluation {evaluation.name}"
