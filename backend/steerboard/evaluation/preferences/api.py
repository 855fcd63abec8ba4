"""Preference datasets from rankings and verdicts, over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.datasets.queries import dataset_out
from steerboard.datasets.schemas import DatasetOut
from steerboard.evaluation.lookup import get_evaluation
from steerboard.evaluation.preferences import service as preferences
from steerboard.evaluation.preferences.schemas import PreferencesChoice, PreferencesCreate, PreferencesPreview
from steerboard.platform.http.errors import problems

router = Router(prefix="/evaluations/{evaluation}", tags=["evaluations"])

Read = Annotated[Access, Depends(AccessTo("read"))]
Write = Annotated[Access, Depends(AccessTo("write"))]


@router.post("/preferences/preview", responses=problems(404))
def preview_preferences(session: Db, access: Read, evaluation: str, body: PreferencesChoice) -> PreferencesPreview:
    """How many pairs there are to train on, and how many are held out, before a dataset is made."""
    stored = get_evaluation(session, access.project, evaluation)
    return preferences.preview(session, access.project, stored, body)


@router.post("/preferences", status_code=201, responses=problems(404, 409))
def create_preferences(session: Db, access: Write, evaluation: str, body: PreferencesCreate) -> DatasetOut:
    """Turn rankings and verdicts into a preference dataset, ready to train a reward model on."""
    stored = get_evaluation(session, access.project, evaluation)
    dataset = preferences.create(session, access.project, stored, body, access.actor)
    detail = {"evaluation": stored.name, "rows": dataset.rows, "split": body.split}
    audit(session, access, "dataset.prefer", dataset.name, detail)
    return dataset_out(session, dataset)
