"""Which tracker is looked at next, and which of its runs have something to export."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import and_, exists, func, insert, literal, or_, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.platform.leases import Lease, Leases, now, take_away
from steerboard.runs.tables import Run
from steerboard.trackers.destinations.protocol import Written
from steerboard.trackers.tables import RunExport, Tracker

# Longer than a tracker takes at most for one batch (`exporting.channel`).
LEASE_SECONDS = 120.0
# How often a tracker without work is looked at.
LOOK_SECONDS = 5.0
# 10 s, 20 s, ... up to half an hour.
_FIRST_WAIT, _FACTOR, _LONGEST_WAIT, _JITTER = 10.0, 2.0, 1800.0, 0.2
_AT_ONCE = 100

LEASES = Leases(Tracker, "tracker", open=Tracker.active.is_(True), key_share=False)


@dataclass(frozen=True)
class Claimed:
    """A tracker, leased to the caller, with all that its process needs. `folder`: of this tracker alone."""

    lease: Lease
    kind: str
    settings: dict[str, Any]
    secret_sealed: str | None
    project: str
    folder: Path


def claim_next(session: Session, home: Path) -> Claimed | None:
    """The tracker that waits longest for a look."""
    tracker = LEASES.first(
        session, LEASES.free(), Tracker.next_look_at <= now(), order_by=(Tracker.next_look_at, Tracker.id)
    )
    if tracker is None:
        return None
    lease = LEASES.grant(tracker, uuid.uuid4(), LEASE_SECONDS)
    session.flush()
    project = session.get_one(Project, tracker.project_id).name
    return Claimed(
        lease=lease,
        kind=tracker.kind,
        settings=tracker.settings,
        secret_sealed=tracker.secret_sealed,
        project=project,
        folder=folder_of(home, project, tracker.name),
    )


def folder_of(home: Path, project: str, tracker: str) -> Path:
    """The folder where a tracker of the project keeps its files. Both names are safe as a folder's."""
    return home / "trackers" / project / tracker


def others_wait(session: Session) -> bool:
    due = select(Tracker.id).where(LEASES.free(), Tracker.next_look_at <= now())
    return session.scalar(select(due.exists())) or False


def add_new_runs(session: Session, tracker: Tracker) -> None:
    """Runs of its kinds that have begun since the tracker was made."""
    runs = select(literal(tracker.id), Run.id).where(
        Run.project_id == tracker.project_id,
        Run.parent_id.is_(None),
        Run.kind.in_(tracker.run_kinds),
        Run.started_at >= tracker.created_at,
        ~exists().where(RunExport.tracker_id == tracker.id, RunExport.run_id == Run.id),
    )
    session.execute(insert(RunExport).from_select(["tracker_id", "run_id"], runs))


def _unfinished() -> Any:
    """The run is active, or it has ended and its end was not exported."""
    has_new_end = and_(Run.ended_at.is_not(None), Run.ended_at.is_distinct_from(RunExport.ended_at))
    return or_(and_(Run.ended_at.is_(None), Run.state == "running"), has_new_end)


def due_exports(session: Session, tracker_id: uuid.UUID) -> Sequence[RunExport]:
    """What has waited longest first."""
    waits = RunExport.next_attempt_at > now()
    return session.scalars(
        select(RunExport)
        .join(Run, Run.id == RunExport.run_id)
        .where(RunExport.tracker_id == tracker_id, _unfinished(), ~func.coalesce(waits, False))
        .order_by(RunExport.last_export_at.asc().nulls_first(), RunExport.run_id)
        .limit(_AT_ONCE)
    ).all()


def note_written(session: Session, lease: Lease, run_id: uuid.UUID, sent: int | None, written: Written) -> None:
    """Raises `LeaseLost`."""
    tracker, export = _locked(session, lease, run_id)
    tracker.failures, tracker.last_error = 0, None
    tracker.last_export_at = func.clock_timestamp()
    if export is None:
        return
    export.remote, export.folder = written.remote, written.folder
    # It becomes a link of the dashboard, and a server may have chosen it.
    export.link = written.link if (written.link or "").startswith(("https://", "http://")) else None
    export.confirmed_step = _later(export.confirmed_step, written.confirmed)
    export.sent_step = sent
    export.failures, export.next_attempt_at, export.last_error = 0, None, None
    export.last_export_at = func.clock_timestamp()


def note_end(session: Session, lease: Lease, run_id: uuid.UUID, ended_at: dt.datetime | None) -> None:
    """Its end has been exported. Raises `LeaseLost`."""
    _, export = _locked(session, lease, run_id)
    if export is not None:
        export.ended_at = ended_at


def note_confirmed(session: Session, lease: Lease, confirmed: dict[uuid.UUID, int | None]) -> None:
    """Raises `LeaseLost`."""
    for run_id, step in confirmed.items():
        _, export = _locked(session, lease, run_id)
        if export is not None:
            export.confirmed_step = _later(export.confirmed_step, step)


def note_failed(session: Session, lease: Lease, run_id: uuid.UUID | None, error: str) -> None:
    """`run_id` None: the tracker as a whole has failed. Raises `LeaseLost`."""
    tracker, export = _locked(session, lease, run_id)
    tracker.failures += 1
    tracker.last_error = error
    if export is not None:
        export.failures += 1
        export.last_error = error
        export.next_attempt_at = _in(wait_seconds(export.failures))


def release(session: Session, lease: Lease) -> None:
    """Gives the lease up until the next look: soon, or later after failures. Raises `LeaseLost`."""
    tracker = LEASES.fenced(session, lease)
    take_away(tracker)
    wait = wait_seconds(tracker.failures) if tracker.failures else LOOK_SECONDS
    tracker.next_look_at = _in(wait)


def wait_seconds(failures: int) -> float:
    """How long after that many failures in a row."""
    wait = min(_FIRST_WAIT * _FACTOR ** min(failures - 1, 20), _LONGEST_WAIT)
    return wait * random.uniform(1 - _JITTER, 1 + _JITTER)


def _in(seconds: float) -> Any:
    return func.clock_timestamp() + dt.timedelta(seconds=seconds)


def _locked(session: Session, lease: Lease, run_id: uuid.UUID | None) -> tuple[Tracker, RunExport | None]:
    tracker = LEASES.fenced(session, lease)
    return tracker, session.get(RunExport, (tracker.id, run_id)) if run_id is not None else None


def _later(before: int | None, step: int | None) -> int | None:
    return max((value for value in (before, step) if value is not None), default=None)
