"""What may be done with trackers. Callers commit."""

from __future__ import annotations

import ipaddress
import uuid
from collections.abc import Sequence
from typing import Any

import httpx
from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.errors import NameTaken
from steerboard.platform.http.errors import Conflict, NotFound
from steerboard.platform.leases import now, take_away
from steerboard.platform.names import check_name, find
from steerboard.platform.security.safe_http import AddressRefused, check_url, refuse_private
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings
from steerboard.runs.tables import Run
from steerboard.trackers.installed import require
from steerboard.trackers.schemas import TrackerChange, TrackerCreate, TrackerSettings
from steerboard.trackers.tables import RunExport, Tracker
from steerboard_contracts.errors import BadInput, ErrorLocation
from steerboard_contracts.network.addresses import AllowList

MOST_TRACKERS = 20


def trackers_of(session: Session, project: Project) -> list[Tracker]:
    """The trackers by name."""
    return list(session.scalars(select(Tracker).where(Tracker.project_id == project.id).order_by(Tracker.name)))


def get_tracker(session: Session, project: Project, ref: str) -> Tracker:
    """The tracker by id or name. Raises `NotFound`, also for another project's."""
    query = select(Tracker).where(Tracker.project_id == project.id)
    tracker = find(session, query, Tracker.id, Tracker.name, ref)
    if tracker is None:
        raise NotFound(f"there is no tracker {ref!r}")
    return tracker


def create(session: Session, settings: Settings, secrets: Secrets, project: Project, given: TrackerCreate) -> Tracker:
    """Raises `BadInput` (`invalid_name`, `tracker_mismatch`), `BadUrl`, `AddressRefused`, `TrackerMissing`,
    `NameTaken`, `Conflict`."""
    check_name(given.name)
    require(given.settings.kind)
    if session.scalar(select(Tracker.id).where(Tracker.project_id == project.id, Tracker.name == given.name)):
        raise NameTaken(f"there is already a tracker {given.name!r}", hint="Choose another name.")
    count = select(func.count()).select_from(Tracker).where(Tracker.project_id == project.id)
    if (session.scalar(count) or 0) >= MOST_TRACKERS:
        raise Conflict(
            f"a project has at most {MOST_TRACKERS} trackers", code="too_many_trackers", hint="Delete another first."
        )
    checked = _checked(settings, given.settings)
    secret = given.secret.get_secret_value() if given.secret else None
    _refuse_secret(given.settings, secret)
    tracker = Tracker(
        project_id=project.id,
        name=given.name,
        kind=given.settings.kind,
        settings=checked,
        run_kinds=list(given.run_kinds),
        secret_sealed=secrets.seal(secret) if secret else None,
        active=True,
    )
    session.add(tracker)
    session.flush()
    session.refresh(tracker)
    return tracker


def change(session: Session, settings: Settings, secrets: Secrets, tracker: Tracker, given: TrackerChange) -> None:
    """Changes only what was given. An exporter that is at work starts again. Raises `BadInput` (`tracker_mismatch`),
    `BadUrl`, `AddressRefused`, `TrackerMissing`."""
    locked = select(Tracker).where(Tracker.id == tracker.id).with_for_update()
    session.scalars(locked.execution_options(populate_existing=True)).one()
    secret = given.secret.get_secret_value() if given.secret else None
    if given.settings is not None:
        if given.settings.kind != tracker.kind:
            raise _mismatch(f"tracker {tracker.name!r} is of the kind {tracker.kind}", "settings.kind")
        before, tracker.settings = tracker.settings.get("url"), _checked(settings, given.settings)
        if tracker.settings.get("url") != before:
            tracker.secret_sealed = None
        _refuse_secret(given.settings, secret or tracker.secret_sealed)
    if secret is not None:
        if tracker.kind not in ("mlflow", "wandb"):
            raise _mismatch(f"{tracker.kind} takes no secret", "secret")
        tracker.secret_sealed = secrets.seal(secret)
    if given.run_kinds is not None:
        tracker.run_kinds = list(given.run_kinds)
    if given.active is not None:
        if given.active:
            require(tracker.kind)
        tracker.active = given.active
    take_away(tracker)
    tracker.failures, tracker.last_error = 0, None
    tracker.next_look_at = func.clock_timestamp()
    session.flush()
    session.refresh(tracker)


def remove(session: Session, tracker: Tracker) -> None:
    """What was exported stays where it is."""
    session.execute(delete(Tracker).where(Tracker.id == tracker.id))


def export_run(session: Session, tracker: Tracker, run: Run) -> RunExport:
    """Export it now, also one that began before the tracker was made. Raises `Conflict` (`tracker_inactive`),
    `BadInput` (`not_exported`) for a shard, or a run that has not begun."""
    if not tracker.active:
        raise Conflict(
            f"tracker {tracker.name!r} is switched off",
            code="tracker_inactive",
            hint="Switch it on in the project's settings, then try again.",
        )
    if run.parent_id is not None or run.started_at is None:
        why = "is part of another run" if run.parent_id is not None else "did no work of its own"
        raise BadInput(f"run {run.name} {why}, so there is nothing to export", code="not_exported")
    values = {"tracker_id": tracker.id, "run_id": run.id}
    again = {"failures": 0, "next_attempt_at": None}
    session.execute(insert(RunExport).values(values).on_conflict_do_update(index_elements=list(values), set_=again))
    tracker.next_look_at = now()
    session.flush()
    return session.get_one(RunExport, (tracker.id, run.id), populate_existing=True)


def exports_of(session: Session, run: Run) -> list[tuple[RunExport, Tracker]]:
    """The exports by name of the tracker."""
    query = (
        select(RunExport, Tracker)
        .join(Tracker, Tracker.id == RunExport.tracker_id)
        .where(RunExport.run_id == run.id)
        .order_by(Tracker.name)
    )
    return [(export, tracker) for export, tracker in session.execute(query)]


def counts(session: Session, trackers: Sequence[Tracker]) -> dict[uuid.UUID, tuple[int, int]]:
    """The runs by tracker: that were exported at least in part, and those of which the last attempt failed."""
    query = (
        select(
            RunExport.tracker_id,
            func.count().filter(RunExport.last_export_at.is_not(None)),
            func.count().filter(RunExport.failures > 0),
        )
        .where(RunExport.tracker_id.in_([tracker.id for tracker in trackers]))
        .group_by(RunExport.tracker_id)
    )
    return {id_: (exported, failing) for id_, exported, failing in session.execute(query)}


def _checked(settings: Settings, given: TrackerSettings) -> dict[str, Any]:
    """The settings as they are stored: without `kind`, with an address that may be called."""
    stored = given.model_dump(mode="json", exclude={"kind"})
    if given.kind in ("mlflow", "wandb") and stored["url"] is not None:
        stored["url"] = check_url(stored["url"]).rstrip("/")
        if given.kind == "wandb":
            _refuse_unnamed(settings, stored["url"])
        else:
            refuse_private(settings, stored["url"])
    return stored


def _refuse_unnamed(settings: Settings, url: str) -> None:
    """W&B's own client resolves names again, past the check of each connection, so its operator has to name the host.
    Raises `AddressRefused`."""
    parsed = httpx.URL(url)
    port = parsed.port or (443 if parsed.scheme == "https" else 80)
    try:
        address = ipaddress.ip_address(parsed.host)
    except ValueError:
        address = ipaddress.ip_address("0.0.0.0")
    if not AllowList(settings.allowed_private).allows(parsed.host, address, port):
        raise AddressRefused(
            f"{parsed.host}:{port} is not a W&B server that this server's operator has named",
            hint=f"The operator can allow it with STEERBOARD_ALLOWED_PRIVATE={parsed.host}:{port} (a comma separates "
            "it from what that allows already).",
        )


def _refuse_secret(given: TrackerSettings, secret: str | None) -> None:
    if given.kind in ("tensorboard", "trackio") and secret:
        raise _mismatch(f"{given.kind} takes no secret", "secret")
    if given.kind == "wandb" and given.mode == "online" and not secret:
        raise _mismatch("W&B needs an API key, unless it is offline", "secret")
    if given.kind == "mlflow" and given.user and not secret:
        raise _mismatch("a user of MLflow needs a password", "secret")


def _mismatch(detail: str, field: str) -> BadInput:
    place = ErrorLocation(location=field, message="does not fit the tracker")
    return BadInput(detail, code="tracker_mismatch", errors=[place])
