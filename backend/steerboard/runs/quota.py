"""How many device-hours a project may use in a calendar month, and how many it has used."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from sqlalchemy import and_, case, extract, func, or_, select
from sqlalchemy.orm import Session, aliased

from steerboard.accounts.storage_quota import refuse_beyond_storage
from steerboard.accounts.tables import Project
from steerboard.runs.errors import QuotaReached
from steerboard.runs.tables import Run, RunAttempt

_CHECKED = "steerboard.quota_checked"
_HOUR = 3600.0


@dataclass(frozen=True)
class Used:
    """`device_hours` of attempts that ended since `since`, the month's first moment in UTC, and of those at work.
    `until`: when the next month begins."""

    device_hours: float
    since: dt.datetime
    until: dt.datetime


def used(session: Session, project: Project) -> Used:
    """An attempt counts in the month in which it ends, with all of its time."""
    now = session.scalars(select(func.now())).one().astimezone(dt.UTC)
    since = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    until = (since + dt.timedelta(days=32)).replace(day=1)
    part = aliased(Run)
    has_parts = select(part.id).where(part.parent_id == RunAttempt.run_id).exists()
    at_work = RunAttempt.devices * extract("epoch", RunAttempt.heartbeat_at - RunAttempt.started_at)
    seconds = func.sum(case((RunAttempt.ended_at.is_(None), at_work), else_=RunAttempt.device_seconds))
    total = session.scalar(
        select(seconds)
        .join(Run, Run.id == RunAttempt.run_id)
        .where(
            Run.project_id == project.id,
            or_(RunAttempt.ended_at.is_(None), RunAttempt.ended_at >= since),
            # The attempt that gathers shards carries the sum of their cost.
            or_(RunAttempt.outcome.is_(None), ~and_(RunAttempt.outcome == "succeeded", has_parts)),
        )
    )
    return Used(max(0.0, float(total or 0.0)) / _HOUR, since, until)


def refuse_beyond_quota(session: Session, project: Project) -> None:
    """Called before a run that has to work is started or resumed; asked once a session. Raises `QuotaReached`,
    `StorageQuotaReached`."""
    if project.id in session.info.setdefault(_CHECKED, set()):
        return
    refuse_beyond_storage(session, project)
    _refuse_beyond_device_hours(session, project)
    session.info[_CHECKED].add(project.id)


def _refuse_beyond_device_hours(session: Session, project: Project) -> None:
    quota = project.device_hours_quota
    if quota is None:
        return
    month = used(session, project)
    if month.device_hours >= quota:
        raise QuotaReached(
            f"project {project.name} has used {month.device_hours:.4g} of its {quota:.4g} device-hours in"
            f" {month.since:%B %Y}",
            hint=f"More can start on {month.until:%d %B} (UTC), or when the operator of this server raises the quota. "
            "What runs now continues.",
        )
