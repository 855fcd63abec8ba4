"""What webhooks will be sent, written in the transaction of what happened: never lost, never about a rollback."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.platform.settings import get_settings
from steerboard.runs.state.states import ENDED, state_of
from steerboard.runs.tables import Pipeline, Run
from steerboard.webhooks.tables import Webhook, WebhookDelivery
from steerboard_contracts.run_kinds import kinds_that

TRIES = 10


def write_endings(session: Session, runs: Collection[Run]) -> None:
    """Add the deliveries about runs that this transaction has ended, and about pipelines that ended with them.

    Shards are not news of their own, and neither is what no list shows. The caller holds the lock of the project's
    event stream: of two transactions that end the last two runs of a pipeline, the second then sees what the first did,
    and the pipeline ends exactly once.
    """
    unlisted = kinds_that(lambda kind: kind.unlisted)
    ended = [run for run in runs if run.state in ENDED and run.parent_id is None and run.kind not in unlisted]
    if not ended:
        return
    webhooks = _active(session, {run.project_id for run in ended})
    if not webhooks:
        return
    projects = {webhook.project_id: session.get_one(Project, webhook.project_id) for webhook in webhooks}
    pipelines = {
        pipeline.id: pipeline
        for pipeline in session.scalars(select(Pipeline).where(Pipeline.id.in_({run.pipeline_id for run in ended})))
    }
    for run in ended:
        if run.project_id in projects:
            pipeline = pipelines.get(run.pipeline_id) if run.pipeline_id else None
            _tell(
                session, webhooks, run.project_id, f"run.{run.state}", _of_run(run, projects[run.project_id], pipeline)
            )
    for pipeline in pipelines.values():
        if pipeline.project_id not in projects:
            continue
        counts = _counts(session, pipeline.id)
        state = state_of(counts)
        if state in ENDED:
            data = _of_pipeline(pipeline, projects[pipeline.project_id], state, counts)
            _tell(session, webhooks, pipeline.project_id, f"pipeline.{state}", data)


def write_news(session: Session, run: Run, event: str, about: dict[str, Any]) -> None:
    """Add the deliveries of an event that is not an end; `about` is added to what every event of a run has."""
    webhooks = _active(session, {run.project_id})
    if webhooks:
        pipeline = session.get(Pipeline, run.pipeline_id) if run.pipeline_id else None
        data = _of_run(run, session.get_one(Project, run.project_id), pipeline) | about
        _tell(session, webhooks, run.project_id, event, data)


def _active(session: Session, projects: Collection[uuid.UUID]) -> Sequence[Webhook]:
    return session.scalars(
        select(Webhook)
        .where(Webhook.project_id.in_(projects), Webhook.active)
        .order_by(Webhook.id)
        # One that is being deleted must be gone, or stay until the commit: a run's end may not fail for it.
        .with_for_update(read=True, key_share=True)
    ).all()


def delivery(webhook: Webhook, event: str, data: dict[str, Any]) -> WebhookDelivery:
    """A delivery that is due immediately."""
    return WebhookDelivery(
        webhook_id=webhook.id,
        event=event,
        payload={"type": event, "timestamp": dt.datetime.now(dt.UTC).isoformat(), "data": data},
        state="pending",
        attempt=0,
        tries_left=TRIES,
        next_attempt_at=func.clock_timestamp(),
    )


def link(project: Project, path: str = "") -> str:
    """Where a person sees it in the dashboard."""
    return f"{get_settings().public_url}/p/{project.name}{path}"


def _tell(
    session: Session, webhooks: Sequence[Webhook], project_id: uuid.UUID, event: str, data: dict[str, Any]
) -> None:
    for webhook in webhooks:
        if webhook.project_id == project_id and event in webhook.events:
            session.add(delivery(webhook, event, data))


def _counts(session: Session, pipeline_id: uuid.UUID) -> dict[str, int]:
    states = select(Run.state, func.count()).where(Run.pipeline_id == pipeline_id, Run.parent_id.is_(None))
    return {row[0]: row[1] for row in session.execute(states.group_by(Run.state))}


def _of_run(run: Run, project: Project, pipeline: Pipeline | None) -> dict[str, Any]:
    return {
        "id": str(run.id),
        "name": run.name,
        "project": project.name,
        "state": run.state,
        "reason": run.reason,
        "reason_code": run.reason_code,
        "url": link(project, f"/runs/{run.id}"),
        "kind": run.kind,
        "method": run.method,
        "attempt": run.attempt,
        "pipeline": {"id": str(pipeline.id), "name": pipeline.name} if pipeline else None,
    }


def _of_pipeline(pipeline: Pipeline, project: Project, state: str, counts: dict[str, int]) -> dict[str, Any]:
    return {
        "id": str(pipeline.id),
        "name": pipeline.name,
        "project": project.name,
        "state": state,
        "reason": ", ".join(f"{counts[each]} {each}" for each in sorted(counts)),
        "url": link(project, f"/pipelines/{pipeline.id}"),
        "stages": counts,
    }
