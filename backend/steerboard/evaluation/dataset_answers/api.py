"""A dataset's own answers as the entrants of an evaluation, over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.datasets.lookup import get_dataset
from steerboard.evaluation import queries
from steerboard.evaluation.dataset_answers import service
from steerboard.evaluation.dataset_answers.schemas import DatasetAnswers
from steerboard.evaluation.schemas import EvaluationOut
from steerboard.platform.http.errors import problems

router = Router(prefix="/datasets/{dataset}", tags=["evaluations"])

Read = Annotated[Access, Depends(AccessTo("read"))]
Write = Annotated[Access, Depends(AccessTo("write"))]


@router.get("/answers", responses=problems(404))
def get_dataset_answers(session: Db, access: Read, dataset: str) -> DatasetAnswers:
    """The answers of a dataset as entrants: `chosen` and `rejected` of pairs, else `answer-1`, `answer-2`, ..."""
    return service.preview(session, access.project, get_dataset(session, access.project, dataset))


@router.post("/evaluation", status_code=201, responses=problems(404))
def create_dataset_evaluation(session: Db, access: Write, dataset: str) -> EvaluationOut:
    """Make the evaluation of a dataset's own answers, for campaigns, judges and reward models. Again it gives the same
    one. Nothing is generated."""
    stored = get_dataset(session, access.project, dataset)
    made, new = service.evaluation_of(session, access.project, stored, access.actor)
    if new:
        detail = {"dataset": stored.name}
        audit(session, access, "evaluation.create", f"evaluation {made.name} {made.id}", detail)
    session.refresh(made)
    return queries.evaluations_out(session, [made])[0]
