"""Trackers over HTTP: where a project's runs are exported to while they run, and how far each has got."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.accounts.tables import Project
from steerboard.platform.http.errors import problems
from steerboard.runs.queries import get_run
from steerboard.trackers import service
from steerboard.trackers.exporting.due import folder_of
from steerboard.trackers.schemas import RunExportIn, RunExportOut, TrackerChange, TrackerCreate, TrackerOut
from steerboard.trackers.tables import RunExport, Tracker

router = Router(tags=["trackers"])

Admin = Annotated[Access, Depends(AccessTo("admin"))]
Reader = Annotated[Access, Depends(AccessTo("read"))]
Runner = Annotated[Access, Depends(AccessTo("run"))]


@router.get("/trackers", responses=problems(404))
def list_trackers(request: Request, session: Db, access: Reader) -> list[TrackerOut]:
    """All of them, by name."""
    return _all_out(request, session, access.project, service.trackers_of(session, access.project))


@router.post("/trackers", status_code=201, responses=problems(404, 409))
def create_tracker(request: Request, body: TrackerCreate, session: Db, access: Admin) -> TrackerOut:
    """Export the runs that begin from now on. A run never waits for a tracker, and never fails by it."""
    state = request.app.state
    made = service.create(session, state.settings, state.secrets, access.project, body)
    audit(session, access, "tracker.create", f"tracker {made.name} {made.id}", {"kind": made.kind})
    return _all_out(request, session, access.project, [made])[0]


@router.patch("/trackers/{tracker}", responses=problems(404, 409))
def change_tracker(request: Request, tracker: str, body: TrackerChange, session: Db, access: Admin) -> TrackerOut:
    """Change the given fields only. An inactive tracker is sent nothing; what it lacks follows when it is active."""
    row = service.get_tracker(session, access.project, tracker)
    state = request.app.state
    service.change(session, state.settings, state.secrets, row, body)
    detail = body.model_dump(mode="json", exclude={"secret", "settings"}, exclude_unset=True)
    detail |= {"new_settings": body.settings is not None, "new_secret": body.secret is not None}
    audit(session, access, "tracker.change", f"tracker {row.name} {row.id}", detail)
    return _all_out(request, session, access.project, [row])[0]


@router.delete("/trackers/{tracker}", status_code=204, responses=problems(404))
def delete_tracker(tracker: str, session: Db, access: Admin) -> None:
    """Export nothing more. What was exported stays in the tracker."""
    row = service.get_tracker(session, access.project, tracker)
    service.remove(session, row)
    audit(session, access, "tracker.delete", f"tracker {row.name} {row.id}")


@router.post("/trackers/{tracker}/exports", responses=problems(404, 409))
def export_run(tracker: str, body: RunExportIn, session: Db, access: Runner) -> RunExportOut:
    """Export a run within seconds, also one that began before the tracker was made, or whose export failed."""
    row = service.get_tracker(session, access.project, tracker)
    run = get_run(session, access.project, body.run)
    export = service.export_run(session, row, run)
    audit(session, access, "tracker.export", f"tracker {row.name} {row.id}", {"run": str(run.id)})
    return _export_out(export, row)


@router.get("/runs/{run}/exports", responses=problems(404))
def list_run_exports(run: str, session: Db, access: Reader) -> list[RunExportOut]:
    """The places the run is exported to, and how far, by tracker's name."""
    stored = get_run(session, access.project, run)
    return [_export_out(export, tracker) for export, tracker in service.exports_of(session, stored)]


def _export_out(export: RunExport, tracker: Tracker) -> RunExportOut:
    return RunExportOut.model_validate(
        {
            "tracker": tracker.name,
            "kind": tracker.kind,
            "active": tracker.active,
            "link": export.link,
            "folder": export.folder,
            "step": export.sent_step,
            "complete": export.ended_at is not None,
            "last_export_at": export.last_export_at,
            "last_error": export.last_error,
            "next_attempt_at": export.next_attempt_at,
        }
    )


def _all_out(request: Request, session: Session, project: Project, trackers: list[Tracker]) -> list[TrackerOut]:
    counts = service.counts(session, trackers)
    home = request.app.state.settings.home
    shown = []
    for tracker in trackers:
        on_disk = tracker.kind in ("tensorboard", "trackio") or tracker.settings.get("mode") == "offline"
        runs, failing = counts.get(tracker.id, (0, 0))
        fields = {
            **{name: getattr(tracker, name) for name in ("id", "name", "kind", "run_kinds", "active", "created_at")},
            "settings": tracker.settings | {"kind": tracker.kind},
            "has_secret": tracker.secret_sealed is not None,
            "folder": str(folder_of(home, project.name, tracker.name)) if on_disk else None,
            "runs": runs,
            "failing": failing,
            "last_export_at": tracker.last_export_at,
            "last_error": tracker.last_error,
            "next_look_at": tracker.next_look_at if tracker.failures else None,
        }
        shown.append(TrackerOut.model_validate(fields))
    return shown
