"""A small platform to keep: a dataset, a model, a run, an evaluation, and secrets; and how to compare two of them."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, text
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.imports.loading import import_file
from steerboard.evaluation.tables import Evaluation
from steerboard.maintenance import database_catalogue
from steerboard.maintenance.backup import Backup, back_up
from steerboard.maintenance.manifest import BackupManifest
from steerboard.maintenance.restore import restore
from steerboard.notices.tables import NoticeRule
from steerboard.platform.database import transaction
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.platform.storage.from_url import open_storage
from steerboard.registry.endpoints import service as endpoints
from steerboard.registry.endpoints.schemas import EndpointCreate
from steerboard.registry.service import register_model
from steerboard.registry.tables import Model
from steerboard.runs.state import lifecycle
from steerboard.runs.state.lifecycle import InputRef
from steerboard.runs.tables import Metric, RunLog, RunOutput
from steerboard_contracts.run_config import RUN_CONFIG
from support.models.model_folders import write_model

API_KEY = "sk-a-secret-of-somebody"
# Rows that are hard to write down: every kind of line break and escape, and nothing at all.
HARD = "tab\there, line\nbreak, \\. end, \\N null, carriage\rreturn, \u2028, 你好 🦙, \x7f"


class KeptWorld:
    def __init__(
        self, sessions: sessionmaker[Session], project: Project, store: ArtifactStore, secrets: Secrets, folder: Path
    ) -> None:
        self.sessions, self.project_id, self.store, self.secrets = sessions, project.id, store, secrets
        self.folder = folder

    def fill(self) -> None:
        rows = self.folder / "rows.jsonl"
        lines = [{"prompt": f"{HARD} {number}", "response": HARD} for number in range(50)]
        rows.write_text("".join(json.dumps(line) + "\n" for line in lines))
        with transaction(self.sessions) as session:
            project = session.get_one(Project, self.project_id)
            data = import_file(session, project, path=rows, name="rows", kind="instructions").dataset
            endpoints.create(
                session,
                Settings(home=self.folder),
                self.secrets,
                project,
                EndpointCreate(name="judge", base_url="https://example.org/v1", model="m", api_key=API_KEY),
            )
            hook = {"name": "hook", "url": "https://example.org", "events": ["run.ended"], "active": True}
            session.add(NoticeRule(project_id=project.id, secret_sealed=self.secrets.seal("hush"), **hook))
            run = lifecycle.create_run(
                session,
                project,
                name="labels",
                config=RUN_CONFIG.validate_python({"run": "mix", "parts": [{}], "size": 10}),
                inputs={"parts.0": InputRef(dataset=data.id)},
                created_by="tester",
            )
            session.add(Metric(run_id=run.id, name="loss", step=1, value=0.1 + 0.2, attempt=1))
            session.add(RunLog(run_id=run.id, attempt=1, level="info", message=HARD))
            evaluation = Evaluation(
                project_id=project.id,
                name="first",
                description=HARD,
                prompts_from={"a": None},
                checked_against=[],
                to_check=None,
                seed=2**40,
                version=1,
                created_by="tester",
            )
            session.add(evaluation)
            self.evaluation = evaluation
        self.run_id = run.id
        self.model("base", b"weights of the base")

    def model(self, name: str, weights: bytes) -> uuid.UUID:
        folder = write_model(self.folder / f"model-{name}", weights=weights)
        with transaction(self.sessions) as session:
            return register_model(
                session,
                self.store,
                session.get_one(Project, self.project_id),
                name=name,
                folder=folder,
                role="sft",
                method="sft",
                parent_id=None,
                run_id=None,
            ).id

    def drop_model(self, name: str) -> None:
        with transaction(self.sessions) as session:
            session.delete(session.query(Model).filter_by(name=name).one())

    def output(self, name: str, artifact_hash: str) -> None:
        """An artifact that a run's output refers to."""
        with transaction(self.sessions) as session:
            session.add(RunOutput(run_id=self.run_id, name=name, type="rewards", artifact_hash=artifact_hash))


class Place:
    """The folder of backups, and an empty home that one is restored into."""

    def __init__(self, engine: Engine, empty: Engine, world: KeptWorld, folder: Path) -> None:
        self.engine, self.empty, self.world = engine, empty, world
        self.dest = str(folder / "backups")
        self.home = folder / "other-home"
        self.store = ArtifactStore(f"file://{folder / 'other-artifacts'}")

    def back_up(self, *, keys: Secrets | None = None, verify: bool = False) -> Backup:
        dest = open_storage(self.dest, private=True)
        return back_up(self.engine, self.world.store, dest, keys=keys, verify=verify)

    def restore(self, name: str | None = None) -> BackupManifest:
        return restore(self.empty, self.store, open_storage(self.dest, private=True), home=self.home, name=name)


def somebody_waits(engine: Engine) -> bool:
    """Whether a session of this database waits for a lock."""
    waiting = text(
        "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)"
        " WHERE NOT granted AND datname = current_database()"
    )
    with engine.connect() as connection:
        return bool(connection.execute(waiting).scalar_one())


def rows_of(engine: Engine) -> dict[str, list[Any]]:
    """Every row of every table as JSON, in an order of their own."""
    with engine.connect() as connection:
        return {
            table: sorted(
                json.dumps(row, sort_keys=True)
                for row in connection.execute(text(f'SELECT to_jsonb(t) FROM "{table}" AS t')).scalars()
            )
            for table in database_catalogue.tables(connection)
        }


def schema_of(engine: Engine) -> list[tuple[str, ...]]:
    """Constraints and indexes by their definitions."""
    with engine.connect() as connection:
        constraints = connection.execute(
            text(
                "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
                " WHERE connamespace = current_schema()::regnamespace"
            )
        )
        indexes = connection.execute(
            text("SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema()")
        )
        return sorted(tuple(row) for row in [*constraints, *indexes])
