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
from steerboard.runs.stored_bytes import stored_bytes

router = Router(prefix="/quota", tags=["projects"])


class QuotaChange(BaseModel):
    """What is not given stays as it is."""

    model_config = ConfigDict(extra="forbid")

    device_hours: Annotated[float | None, Field(ge=0, le=1e9, description="In a calendar month; null: no limit.")] = (
        None
    )
    storage_bytes: Annotated[int | None, Field(ge=0, le=10**18, description="At any time; null: no limit.")] = None


class StoredBytesOut(BaseModel):
    """Bytes of the rows of datasets, of the files of models, of checkpoints of runs that may resume, and of files that
    were announced or wait for their import."""

    model_config = ConfigDict(from_attributes=True)

    datasets: int
    models: int
    checkpoints: int
    uploads: int


class QuotaOut(BaseModel):
    """`device_hours`: the limit in a calendar month (UTC), null without one. `used_device_hours` of attempts that ended
    since `since`, and of those at work; the next month begins at `until`. `storage_bytes`: the limit of what the
    project keeps at any time, null without one; `used_storage` is what it keeps, `used_storage_bytes` all of that."""

    device_hours: float | None
    used_device_hours: float
    since: dt.datetime
    until: dt.datetime
    storage_bytes: int | None
    used_storage_bytes: int
    used_storage: StoredBytesOut


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
    """Set quotas, for the operator alone. Beyond either no run starts or resumes, and what runs continues; beyond that
    of storage nothing is imported or uploaded."""
    project = access.project
    before = {"device_hours": project.device_hours_quota, "storage_bytes": project.storage_bytes_quota}
    given = body.model_dump(exclude_unset=True)
    if "device_hours" in given:
        project.device_hours_quota = body.device_hours
    if "storage_bytes" in given:
        project.storage_bytes_quota = body.storage_bytes
    session.flush()
    detail = {"from": {name: before[name] for name in given}, **given}
    audit(session, access, "project.quota", f"project {access.project.name} {access.project.id}", detail)
    return _out(session, access.project)


def _out(session: Session, project: Project) -> QuotaOut:
    month, kept = quota.used(session, project), stored_bytes(session, project)
    return QuotaOut(
        device_hours=project.device_hours_quota,
        used_device_hours=month.device_hours,
        since=month.since,
        until=month.until,
        storage_bytes=project.storage_bytes_quota,
        used_storage_bytes=kept.total,
        used_storage=StoredBytesOut.model_validate(kept),
    )
