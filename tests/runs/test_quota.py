"""A project's device-hours in a month: what counts, and what is refused beyond them."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, update
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from steerboard.runs.errors import QuotaReached
from steerboard.runs.state import lifecycle
from steerboard.runs.tables import Run, RunAttempt
from steerboard_contracts.run_config import RUN_CONFIG

QUOTA = "/api/v1/projects/default/quota"


def created(session: Session, project: Project, name: str, **options: Any) -> Run:
    config = RUN_CONFIG.validate_python({"run": "mix", "parts": [{}], "seed": hash(name) % 2**31})
    given: dict[str, Any] = {"inputs": {}, "reuse": False, "created_by": "tester", **options}
    return lifecycle.create_run(session, session.get_one(Project, project.id), name=name, config=config, **given)


def spent(sessions: sessionmaker[Session], project: Project, hours: float, **attempt: Any) -> uuid.UUID:
    """A run with one ended attempt that took that long."""
    with transaction(sessions) as session:
        run = created(session, project, f"run-{uuid.uuid4().hex}")
        values = {"outcome": "failed", "ended_at": func.now(), "device_seconds": 3600 * hours, "devices": 1, **attempt}
        session.add(RunAttempt(run_id=run.id, attempt=1, worker="w", **values))
        session.execute(update(Run).where(Run.id == run.id).values(state="failed", failed_attempts=1, attempt=1))
        return run.id


def test_beyond_the_quota_no_run_starts_or_resumes(
    client: TestClient, sessions: sessionmaker[Session], project: Project
) -> None:
    run = spent(sessions, project, 1.5)
    answer = client.put(QUOTA, json={"device_hours": 2}).json()
    assert (answer["device_hours"], answer["used_device_hours"]) == (2, 1.5)
    with transaction(sessions) as session:
        created(session, project, "fits")
    spent(sessions, project, 0.6)
    with (
        pytest.raises(QuotaReached, match=r"has used 2.1 of its 2 device-hours in \w+ 2"),
        transaction(sessions) as one,
    ):
        created(one, project, "too-much")
    refused = client.post(f"/api/v1/projects/default/runs/{run}/resume", json={})
    assert (refused.status_code, refused.json()["code"]) == (409, "quota_reached")
    assert "operator" in refused.json()["hint"]
    client.put(QUOTA, json={"device_hours": None})
    assert client.post(f"/api/v1/projects/default/runs/{run}/resume", json={}).status_code == 200


def test_only_this_month_counts_and_shards_count_once(
    client: TestClient, sessions: sessionmaker[Session], project: Project
) -> None:
    spent(sessions, project, 5, ended_at=func.now() - dt.timedelta(days=32))
    gathering = spent(sessions, project, 3, outcome="succeeded")
    shard = spent(sessions, project, 3, outcome="succeeded")
    working = spent(sessions, project, 0, outcome=None, ended_at=None, devices=4)
    with transaction(sessions) as session:
        session.execute(update(Run).where(Run.id == shard).values(parent_id=gathering))
        begun = update(RunAttempt).where(RunAttempt.run_id == working)
        session.execute(begun.values(started_at=func.now() - dt.timedelta(minutes=30), heartbeat_at=func.now()))
    assert client.get(QUOTA).json()["used_device_hours"] == pytest.approx(3 + 4 * 0.5)


def test_a_run_that_reuses_an_equal_one_or_belongs_to_another_needs_no_quota(
    client: TestClient, sessions: sessionmaker[Session], project: Project
) -> None:
    parent = spent(sessions, project, 1)
    client.put(QUOTA, json={"device_hours": 0.5})
    with transaction(sessions) as session:
        assert created(session, project, "part", parent=session.get_one(Run, parent)).state == "queued"


def test_an_owner_reads_the_quota_and_only_the_operator_sets_it(client: TestClient) -> None:
    made = client.post("/api/v1/projects/default/tokens", json={"name": "mine", "scopes": ["admin"]}).json()
    theirs = {"Authorization": f"Bearer {made['token']}"}
    assert client.get(QUOTA, headers=theirs).json()["device_hours"] is None
    refused = client.put(QUOTA, json={"device_hours": 1}, headers=theirs)
    assert (refused.status_code, refused.json()["code"]) == (403, "operator_only")
    assert client.put(QUOTA, json={"device_hours": -1}).status_code == 422
