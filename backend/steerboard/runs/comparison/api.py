"""A comparison of runs behind a link."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from steerboard.accounts.access import Access, AccessTo, Db
from steerboard.accounts.http.routes import Router
from steerboard.platform.http.errors import problems
from steerboard.runs.comparison.page import page_of_runs
from steerboard.runs.comparison.schemas import RunsShareCreate
from steerboard.runs.queries import get_run
from steerboard.sharing.links import create_frozen_link
from steerboard.sharing.schemas import ShareLinkCreated

router = Router(prefix="/share-links/runs", tags=["runs"])


@router.post("", status_code=201, responses=problems(404, 409, 422))
def share_runs(
    body: RunsShareCreate, session: Db, access: Annotated[Access, Depends(AccessTo("write"))]
) -> ShareLinkCreated:
    """Everyone who has the link sees the runs as they are now, without an account: results, costs, the settings and
    inputs that differ, and curves. Its address is in this answer and never again."""
    runs = list(dict.fromkeys(get_run(session, access.project, ref) for ref in body.runs))
    page = page_of_runs(session, runs, body.metrics)
    return create_frozen_link(session, access, "runs", page, body.expires_in_days)
