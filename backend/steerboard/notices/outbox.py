"""Notices, for the dashboard and to be sent by rules, written in the transaction of what happened: never lost, never
about a rollback."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.notices import feed
from steerboard.notices.schedule import Schedule
from steerboard.notices.tables import NoticeDelivery, NoticeRule
from steerboard.platform.settings import get_settings
from steerboard.runs.hooks import News
from steerboard.runs.state.states import ENDED, state_of
from steerboard.runs.tables import Pipeline, Run
from steerboard_contracts.run_kinds import UNLISTED

TRIES = 10


def write_endings(session: Session, runs: Collection[Run]) -> None:
    """Add the notices of runs that this transaction has ended, and of pipelines that ended with them.

    Shards are not news of their own, and neither is what no list shows. The caller holds the lock of the project's
    event stream: of two transactions that end the last two runs of a pipeline, the second then sees what the first did,
    and the pipeline ends exactly once.
    """
    ended = [run for run in runs if run.state in ENDED and run.parent_id is None and run.kind != UNLISTED]
    if not ended:
        return
    writer = _Writer(session, {run.project_id for run in ended})
    pipelines = {
        pipeline.id: pipeline
        for pipeline in session.scalars(select(Pipeline).where(Pipeline.id.in_({run.pipeline_id for run in ended})))
    }
    for run in ended:
        pipeline = pipelines.get(run.pipeline_id) if run.pipeline_id else None
        # A stage that does what it should is part of its pipeline's news.
        shown = pipeline is None or run.state == "failed"
        writer.write(run.project_id, f"run.{run.state}", _of_run(run, pipeline), _run_path(run), shown=shown)
    for pipeline in pipelines.values():
        counts = _counts(session, pipeline.id)
        state = state_of(counts)
        if state in ENDED:
            data = _of_pipeline(pipeline, state, counts)
            writer.write(pipeline.project_id, f"pipeline.{state}", data, f"/pipelines/{pipeline.id}")


def write_news(session: Session, news: Sequence[News]) -> None:
    """Add the notices of events that are not the end of a run or pipeline."""
    writer = _Writer(session, {item.project_id for item in news})
    for item in news:
        if item.run is None:
            writer.write(item.project_id, item.event, item.about, item.path, once=item.once)
        else:
            pipeline = session.get(Pipeline, item.run.pipeline_id) if item.run.pipeline_id else None
            data = _of_run(item.run, pipeline) | item.about
            writer.write(item.project_id, item.event, data, _run_path(item.run), once=item.once)


class _Writer:
    """Writes what happened in these projects: for their dashboards, and for each rule that wants it."""

    def __init__(self, session: Session, projects: Collection[uuid.UUID]) -> None:
        self._session = session
        self._rules = _active(session, projects)
        self._projects = {id_: session.get_one(Project, id_) for id_ in projects}

    def write(
        self,
        project_id: uuid.UUID,
        event: str,
        data: dict[str, Any],
        path: str,
        *,
        once: str | None = None,
        shown: bool = True,
    ) -> None:
        """`path`: of the page, below the project's. `once`: of `News`. `shown`: in the dashboard."""
        project = self._projects[project_id]
        data = {**data, "project": project.name}
        if shown:
            feed.add(self._session, project, event, {**data, "path": path}, once)
        for rule in self._rules:
            if rule.project_id != project_id or event not in rule.events:
                continue
            if once and _was_told(self._session, rule, once):
                continue
            at = due_at(self._session, Schedule.model_validate(rule.schedule))
            made = delivery(rule, event, {**data, "url": link(project, path)}, at)
            made.once = once
            self._session.add(made)


def _active(session: Session, projects: Collection[uuid.UUID]) -> Sequence[NoticeRule]:
    return session.scalars(
        select(NoticeRule)
        .where(NoticeRule.project_id.in_(projects), NoticeRule.active)
        .order_by(NoticeRule.id)
        # One that is being deleted must be gone, or stay until the commit: a run's end may not fail for it.
        .with_for_update(read=True, key_share=True)
    ).all()


def delivery(rule: NoticeRule, event: str, data: dict[str, Any], at: dt.datetime | None = None) -> NoticeDelivery:
    """A delivery that is due at `at`, or immediately."""
    return NoticeDelivery(
        rule_id=rule.id,
        event=event,
        payload={"type": event, "timestamp": dt.datetime.now(dt.UTC).isoformat(), "data": data},
        state="pending",
        attempt=0,
        tries_left=TRIES,
        next_attempt_at=at or func.clock_timestamp(),
    )


def due_at(session: Session, schedule: Schedule) -> dt.datetime | None:
    """When what happens now goes out; None: immediately."""
    if schedule.is_plain:
        return None
    return schedule.earliest(session.scalars(select(func.clock_timestamp())).one())


def link(project: Project, path: str = "") -> str:
    """The address at which a person sees it in the dashboard."""
    return f"{get_settings().public_url}/p/{project.name}{path}"


def _was_told(session: Session, rule: NoticeRule, once: str) -> bool:
    """Waits while another transaction is sending it: of two at a time one waits here for the other."""
    session.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"{rule.id}:{once}", 0))))
    delivered = NoticeDelivery.rule_id == rule.id, NoticeDelivery.once == once
    return session.scalar(select(NoticeDelivery.id).where(*delivered)) is not None


def _counts(session: Session, pipeline_id: uuid.UUID) -> dict[str, int]:
    states = select(Run.state, func.count()).where(Run.pipeline_id == pipeline_id, Run.parent_id.is_(None))
    return {row[0]: row[1] for row in session.execute(states.group_by(Run.state))}


def _run_path(run: Run) -> str:
    return f"/runs/{run.id}"


def _of_run(run: Run, pipeline: Pipeline | None) -> dict[str, Any]:
    return {
        "id": str(run.id),
        "name": run.name,
        "state": run.state,
        "reason": run.reason,
        "reason_code": run.reason_code,
        "kind": run.kind,
        "method": run.method,
        "attempt": run.attempt,
        "pipeline": {"id": str(pipeline.id), "name": pipeline.name} if pipeline else None,
    }


def _of_pipeline(pipeline: Pipeline, state: str, counts: dict[str, int]) -> dict[str, Any]:
    return {
        "id": str(pipeline.id),
        "name": pipeline.name,
        "state": state,
        "reason": ", ".join(f"{counts[each]} {each}" for each in sorted(counts)),
        "stages": counts,
    }
