"""Juries over HTTP. Reading needs `read`; making or deleting one, `write`."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.evaluation.events import changed
from steerboard.evaluation.judge_tables import Jury
from steerboard.evaluation.juries import service as juries
from steerboard.evaluation.juries.schemas import Juries, JuryIn, JuryOut
from steerboard.evaluation.lookup import get_evaluation
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.http.errors import problems

router = Router(prefix="/evaluations/{evaluation}/juries", tags=["evaluations"])

Read = Annotated[Access, Depends(AccessTo("read"))]
Write = Annotated[Access, Depends(AccessTo("write"))]


@router.get("", responses=problems(404))
def list_juries(evaluation: str, session: Db, access: Read) -> Juries:
    """Oldest first."""
    stored = get_evaluation(session, access.project, evaluation)
    return Juries(items=juries.jury_out(session, stored, juries.juries_of(session, stored)))


@router.post("", status_code=201, responses=problems(400, 404, 409))
def create_jury(evaluation: str, body: JuryIn, session: Db, access: Write) -> JuryOut:
    """Combine several judges into one source of the report. A jury sends no requests: it counts the verdicts of its
    judges."""
    stored = get_evaluation(session, access.project, evaluation)
    jury = juries.create_jury(session, stored, body, access.actor)
    audit(session, access, "jury.create", _target(stored, jury), {"rule": jury.rule, "judges": len(jury.judges)})
    changed(session, stored, "judge")
    return juries.jury_out(session, stored, [jury])[0]


@router.delete("/{jury}", status_code=204, responses=problems(404))
def delete_jury(evaluation: str, jury: str, session: Db, access: Write) -> None:
    """Delete a jury. Its judges and their verdicts are kept."""
    stored = get_evaluation(session, access.project, evaluation)
    gone = juries.get_jury(session, stored, jury)
    audit(session, access, "jury.delete", _target(stored, gone))
    session.delete(gone)
    changed(session, stored, "judge")


def _target(evaluation: Evaluation, jury: Jury) -> str:
    return f"jury {jury.name} {jury.id} of evaluation {evaluation.name}"
