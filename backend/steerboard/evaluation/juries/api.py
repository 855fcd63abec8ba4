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
    """By age."""
    found = get_evaluation(session, access.project, evaluation)
    return Juries(items=juries.jury_out(session, found, juries.juries_of(session, found)))


@router.post("", status_code=201, responses=problems(400, 404, 409))
def create_jury(evaluation: str, body: JuryIn, session: Db, access: Write) -> JuryOut:
    """Several judges as one source of the report. It asks nothing: it counts the verdicts that its judges give."""
    found = get_evaluation(session, access.project, evaluation)
    jury = juries.create_jury(session, found, body, access.actor)
    audit(session, access, "jury.create", _target(found, jury), {"rule": jury.rule, "judges": len(jury.judges)})
    changed(session, found, "judge")
    return juries.jury_out(session, found, [jury])[0]


@router.delete("/{jury}", status_code=204, responses=problems(404))
def delete_jury(evaluation: str, jury: str, session: Db, access: Write) -> None:
    """Its judges and their verdicts stay."""
    found = get_evaluation(session, access.project, evaluation)
    gone = juries.get_jury(session, found, jury)
    audit(session, access, "jury.delete", _target(found, gone))
    session.delete(gone)
    changed(session, found, "judge")


def _target(evaluation: Evaluation, jury: Jury) -> str:
    return f"jury {jury.name} {jury.id} of evaluation {evaluation.name}"
