"""A project with trackers, whose runs write metrics as workers do, and which is exported when a test wants it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi.testclient import TestClient
from sqlalchemy import text
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings
from steerboard.runs.state import attempt_outcomes
from steerboard.runs.state.attempt_outcomes import Failure
from steerboard.runs.state.claims import Claim
from steerboard.trackers.exporting.exporters import export_next, exporters
from steerboard_contracts.stage.events import Metrics
from support.patience import wait_until
from support.rows.run_world import World

PROJECT = "/api/v1/projects/default"
BASE = f"{PROJECT}/trackers"


class TrackerWorld(World):
    def __init__(
        self,
        sessions: sessionmaker[Session],
        project: Project,
        client: TestClient,
        settings: Settings,
        secrets: Secrets,
    ) -> None:
        super().__init__(sessions, project)
        self.client = client
        self.settings = settings
        self.secrets = secrets

    def tracker(self, kind: str, *, secret: str | None = None, name: str = "t", **settings: Any) -> Any:
        """It exports the runs of this world, which are mixes."""
        body = {"name": name, "settings": {"kind": kind, **settings}, "run_kinds": ["mix"]}
        answer = self.client.post(BASE, json=body | ({"secret": secret} if secret else {}))
        assert answer.status_code == 201, answer.text
        return answer.json()

    def shown(self, name: str = "t") -> Any:
        return next(one for one in self.client.get(BASE).json() if one["name"] == name)

    def exports(self, run: uuid.UUID) -> Any:
        return self.client.get(f"{PROJECT}/runs/{run}/exports").json()

    def begin(self, name: str = "tuned") -> tuple[uuid.UUID, Claim]:
        run = self.create(name)
        claim = self.claim()
        assert claim is not None
        return run, claim

    def log(self, claim: Claim, *steps: int) -> None:
        """`loss` is 1 / (step + 1), and `eval_loss` 2 at each even step."""
        values = {step: {"loss": 1 / (step + 1)} | ({"eval_loss": 2.0} if step % 2 == 0 else {}) for step in steps}
        self.emit(claim, *(Metrics(step=step, values=figures) for step, figures in values.items()))

    def succeed(self, claim: Claim) -> None:
        self.act(claim, lambda session, run: attempt_outcomes.succeed(session, run, {"loss": 0.25}, 1.0))

    def fail(self, claim: Claim) -> None:
        failure = Failure("out_of_memory", "it went wrong")
        self.act(claim, lambda session, run: attempt_outcomes.fail(session, run, failure, 1.0, 0.0))

    def done(self, *steps: int, name: str = "tuned") -> uuid.UUID:
        """A run that logged these steps and succeeded."""
        run, claim = self.begin(name)
        self.log(claim, *steps)
        self.give_output(run)
        self.succeed(claim)
        return run

    def export(self) -> None:
        """A turn at the tracker, which ends when its runs have ended."""
        with transaction(self.sessions) as session:
            past = "clock_timestamp() - interval '1 s'"
            session.execute(text(f"UPDATE trackers SET next_look_at = {past}, lease_expires_at = NULL"))
            session.execute(text("UPDATE run_exports SET next_attempt_at = NULL"))
        assert export_next(self.sessions, self.settings, self.secrets, threading.Event())

    @contextmanager
    def exporting(self) -> Iterator[None]:
        """Exports as the server does."""
        threads = exporters(self.sessions, self.settings, self.secrets)
        threads.start()
        try:
            yield
        finally:
            threads.stop(30)

    def until_exported(self, run: uuid.UUID, step: int | None, *, complete: bool = False) -> Any:
        def there() -> Any:
            exports = self.exports(run)
            return exports and exports[0]["step"] == step and exports[0]["complete"] == complete and exports[0]

        return wait_until(there, pause=0.2, seconds=60)
