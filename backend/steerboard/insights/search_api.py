"""One search over everything of a project that has a page, over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from steerboard.accounts.access import Access, AccessTo, Db
from steerboard.accounts.http.routes import Router
from steerboard.insights.search import SearchResult, find_everything
from steerboard.platform.http.errors import problems

router = Router(tags=["projects"])


@router.get("/search", responses=problems(404, 422))
def search(
    session: Db,
    access: Annotated[Access, Depends(AccessTo("read"))],
    q: Annotated[
        str, Query(max_length=200, description="A part of a name, a tag or the notes; of runs also settings.")
    ],
    limit: Annotated[int, Query(ge=1, le=50, description="At most this many of each type.")] = 8,
) -> list[SearchResult]:
    """Pipelines, runs, evaluations, models, datasets, campaigns and arenas, each type the newest first."""
    return find_everything(session, access, q, limit)
