"""Tasks waiting for a person, and a newcomer's first steps, over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from steerboard.accounts.access import Access, AccessTo, Db
from steerboard.accounts.http.routes import Router
from steerboard.insights import first_steps, inbox
from steerboard.insights.inbox import WaitingOut
from steerboard.platform.http.errors import problems

router = Router(tags=["projects"])


@router.get("/waiting", responses=problems(404))
def list_waiting(session: Db, access: Annotated[Access, Depends(AccessTo())]) -> WaitingOut:
    """A full disk of the server, pipelines and evaluations that failed lately, collections with rows in no dataset,
    answers to be ranked; the newest first."""
    return inbox.waiting(session, access.project, access.scopes, access.user_id)


@router.get("/first-steps", responses=problems(404))
def show_first_steps(session: Db, access: Annotated[Access, Depends(AccessTo("read"))]) -> first_steps.FirstSteps:
    """Which of the first steps were taken: answers at several scores, pairs imported, five answers ranked."""
    return first_steps.first_steps(session, access.project)
