"""The quota of a project over HTTP."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

from fastapi import Depends
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access, AccessTo, Caller, Db, audit, operator_only
from steerboard.accounts.http.routes import Router
from steerboard.accounts.tables import Project
from steerboard.platform.http.errors import problems
from steerboard.runs import quota

router = Router(prefix="/quota", tags=["projects"])


class QuotaChange(BaseModel):
    model_config = ConfigDict(extra="forbid")

    device_hours: Annotated[float | None, Field(ge=0, le=1e9, description="In a calendar month; null: no limit.")]


class QuotaOut(BaseModel):
    """`device_hours`: the limit in a calendar month (UTC), null without one. `used_device_hours` of attempts that ended
    since `since`, and of those at work; the next month begins at `until`."""

    device_hours: float | None
    used_device_hours: float
    since: dt.datetime
    until: dt.datetime


@router.get("", responses=problems(404))
def show_quota(session: Db, access: Annotated[Access, Depends(AccessTo("read"))]) -> QuotaOut:
    return _out(session, access.project)


@router.put("", responses=problems(404))
def set_quota(
    body: QuotaChange,
    session: Db,
    access: Annotated[Access, Depends(AccessTo("admin"))],
    _operator: Annotated[Caller, Depends(operator_only)],
) -> QuotaOut:
    """Set the quota, for the operator alone. Beyond it no run starts or resumes; what runs continues."""
    before, access.project.device_hours_quota = access.project.device_hours_quota, body.device_hours
    session.flush()
    detail = {"from": before, "device_hours": body.device_hours}
    audit(session, access, "project.quota", f"project {access.project.name} {access.project.id}", detail)
    return _out(session, access.project)


def _out(session: Session, project: Project) -> QuotaOut:
    month = quota.used(session, project)
    return QuotaOut(
        device_hours=project.device_hours_quota,
        used_device_hours=month.device_hours,
        since=month.since,
        until=month.until,
    )
