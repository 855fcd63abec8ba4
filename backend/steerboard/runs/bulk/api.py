"""What is done to several runs over HTTP, and what would happen if it was."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.platform.http.errors import problems
from steerboard.runs.bulk import service
from steerboard.runs.bulk.schemas import BulkChange, BulkResult

router = Router(tags=["runs"])

Runner = Annotated[Access, Depends(AccessTo("run"))]


@router.post("/run-changes/preview", responses=problems(404, 422))
def preview_changes(body: BulkChange, session: Db, access: Runner) -> BulkResult:
    """What would happen to these runs and to what depends on them. Nothing changes."""
    return service.preview(session, access, body)


@router.post("/run-changes", responses=problems(404, 409, 422))
def change_runs(body: BulkChange, session: Db, access: Runner) -> BulkResult:
    """Tag, archive, restore, cancel or delete runs. All or none, unless `skip` is set."""
    result = service.apply(session, access, body)
    names = [change.run.name for change in result.done]
    detail = {"runs": names, "add_tags": body.add_tags, "remove_tags": body.remove_tags}
    audit(session, access, f"runs.{body.action}", f"{len(names)} runs", detail)
    return result
