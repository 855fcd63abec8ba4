"""What waits for a person, over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends

from steerboard.platform.web import Access, AccessTo, Db, problems
from steerboard.runs import waiting
from steerboard.runs.waiting import WaitingOut

router = APIRouter(tags=["projects"])


@router.get("/waiting", responses=problems(404))
def list_waiting(session: Db, access: Annotated[Access, Depends(AccessTo())]) -> WaitingOut:
    """Pipelines and evaluations that failed lately, collections with rows in no dataset, answers to be ranked; the
    newest first."""
    return waiting.waiting(session, access.project, access.scopes)
