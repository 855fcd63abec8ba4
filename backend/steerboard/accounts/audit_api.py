"""Who changed what, in a project or outside of all, over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query
from sqlalchemy import Select, or_, select

from steerboard.accounts.access import Access, AccessTo, Caller, Db, operator_only
from steerboard.accounts.http.routes import Router
from steerboard.accounts.schemas import AuditOut
from steerboard.accounts.tables import NO_RANKING, AuditEntry
from steerboard.platform.http.errors import problems
from steerboard.platform.http.paging import Page, paginate

router = Router(prefix="/audit", tags=["audit"])
system_router = Router(prefix="/system/audit", tags=["audit"])

Text = Query(min_length=1, max_length=200, pattern=r"^[^\x00]+$")
Limit = Annotated[int, Query(ge=1, le=500)]


@router.get("", responses=problems(404))
def list_audit(
    session: Db,
    access: Annotated[Access, Depends(AccessTo("admin"))],
    actor: Annotated[str | None, Text] = None,
    action: Annotated[str | None, Text] = None,
    cursor: str | None = None,
    limit: Limit = 50,
) -> Page[AuditOut]:
    """Newest first. `actor` as the list shows it; `action` whole (`member.add`) or the thing alone (`member`).
    Rankings, of which there are thousands, are listed for `action=ranking` alone."""
    query = _filtered(select(AuditEntry).where(AuditEntry.project_id == access.project.id), actor, action)
    if action is None:
        query = query.where(NO_RANKING)
    return paginate(session, query, AuditEntry.id, _out, cursor=cursor, limit=limit)


@system_router.get("")
def list_system_audit(
    session: Db,
    caller: Annotated[Caller, Depends(operator_only)],
    actor: Annotated[str | None, Text] = None,
    action: Annotated[str | None, Text] = None,
    cursor: str | None = None,
    limit: Limit = 50,
) -> Page[AuditOut]:
    """Events outside all projects, newest first: sign-ins, failed ones too, sign-outs, passwords, sign-in links. Only
    for the operator, since they concern the people of all projects."""
    query = _filtered(select(AuditEntry).where(AuditEntry.project_id.is_(None)), actor, action)
    return paginate(session, query, AuditEntry.id, _out, cursor=cursor, limit=limit)


def _filtered(query: Select[AuditEntry], actor: str | None, action: str | None) -> Select[AuditEntry]:
    if actor is not None:
        query = query.where(AuditEntry.actor == actor)
    if action is not None:
        below = AuditEntry.action.startswith(f"{action}.", autoescape=True)
        query = query.where(or_(AuditEntry.action == action, below))
    return query


def _out(entry: AuditEntry) -> AuditOut:
    return AuditOut(
        id=entry.id,
        at=entry.created_at,
        actor=entry.actor,
        action=entry.action,
        target=entry.target,
        details=entry.detail,
    )
