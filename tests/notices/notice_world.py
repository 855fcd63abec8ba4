"""A project with notices, runs that end as workers end them, and deliveries that are sent when a test wants it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from fastapi.testclient import TestClient
from sqlalchemy import text
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.notices import delivery
from steerboard.platform.database import transaction
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings
from steerboard.runs.state import attempt_outcomes, claims, lifecycle
from steerboard.runs.state.attempt_outcomes import Failure
from steerboard.runs.state.claims import Claim
from steerboard.runs.state.lifecycle import InputRef
from steerboard.runs.state.sweeper import settle_all
from steerboard.runs.tables import Pipeline, Run
from steerboard_contracts.run_config import RUN_CONFIG

BASE = "/api/v1/projects/default/notice-rules"
ALL_EVENTS = [f"{what}.{state}" for what in ("run", "pipeline") for state in ("succeeded", "failed", "cancelled")]


@dataclass
class NoticeWorld:
    client: TestClient
    sessions: sessionmaker[Session]
    project: Project
    settings: Settings
    secrets: Secrets

    def hook(self, url: str, *events: str, name: str = "ci") -> Any:
        return self.rule(name=name, url=url, events=list(events) or ALL_EVENTS)

    def rule(self, **given: Any) -> Any:
        answer = self.client.post(BASE, json={"name": "ci", "events": ALL_EVENTS, **given})
        assert answer.status_code == 201, answer.text
        return answer.json()

    def deliveries(self, name: str = "ci") -> Any:
        """The oldest first."""
        return self.client.get(f"{BASE}/{name}/deliveries").json()["items"][::-1]

    def pipeline(self, *names: str) -> uuid.UUID:
        """Independent `mix` runs."""
        with transaction(self.sessions) as session:
            pipeline = Pipeline(
                project_id=self.project.id, name="rlhf-1", recipe={}, recipe_text="", settings={}, created_by="t"
            )
            session.add(pipeline)
            session.flush()
            for name in names:
                self._create(session, name, pipeline.id)
            return pipeline.id

    def run(self, name: str, *, after: uuid.UUID | None = None, **options: Any) -> uuid.UUID:
        with transaction(self.sessions) as session:
            inputs = {"data": InputRef(run=after)} if after else {}
            return self._create(session, name, None, inputs=inputs, **options).id

    def _create(self, session: Session, name: str, pipeline_id: uuid.UUID | None, **options: Any) -> Run:
        config = RUN_CONFIG.validate_python({"run": "mix", "parts": [{}], "seed": hash(name) % 2**31})
        return lifecycle.create_run(
            session,
            session.get_one(Project, self.project.id),
            name=name,
            config=config,
            created_by="tester",
            **{"inputs": {}, "reuse": False, "pipeline_id": pipeline_id, **options},
        )

    def claim(self) -> Claim:
        with transaction(self.sessions) as session:
            claim = claims.claim_next(session, pool="default", owner="w", worker="w1", devices=1, lease_seconds=30)
        assert claim is not None
        return claim

    def work(self, fail: str | None = None) -> None:
        """Take the next run and finish it."""
        claim = self.claim()
        with transaction(self.sessions) as session:
            run = claims.fenced(session, claim)
            if fail:
                attempt_outcomes.fail(session, run, Failure(fail, "it went wrong"), 1.0, 0.0)
            else:
                attempt_outcomes.succeed(session, run, {}, 1.0)
        settle_all(self.sessions)

    def send_due(self) -> int:
        """Everything that is due now. Returns how many."""
        sent = 0
        while delivery.deliver_next(self.sessions, self.settings, self.secrets):
            sent += 1
        return sent

    def let_time_pass(self, column: str = "next_attempt_at") -> None:
        """Lets time pass until pending deliveries are due again, or leases have expired."""
        with transaction(self.sessions) as session:
            past = f"UPDATE notice_deliveries SET {column} = clock_timestamp() - interval '1 s'"
            session.execute(text(f"{past} WHERE state = 'pending'"))
