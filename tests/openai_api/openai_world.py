"""OpenAI's own client before a real server, without workers: tests do by hand what those would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openai
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.imports.execution import claims as import_claims
from steerboard.datasets.imports.execution.process import work
from steerboard.datasets.imports.files import ImportFiles
from steerboard.openai_api.jobs.starting import start_all
from steerboard.platform.database import transaction
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.service import register_model
from steerboard.runs.tables import Run, WorkerRow
from steerboard_contracts.models import ModelRole
from support.models.model_folders import write_model
from support.rows.other_token import token_headers

CHAT = [
    {"messages": [{"role": "user", "content": f"Name {n}."}, {"role": "assistant", "content": f"It is {n}."}]}
    for n in range(40)
]
PREFERENCES = [
    {
        "input": {"messages": [{"role": "user", "content": f"Name {n}."}]},
        "preferred_output": [{"role": "assistant", "content": f"It is {n}, gladly."}],
        "non_preferred_output": [{"role": "assistant", "content": "No."}],
    }
    for n in range(40)
]
PROMPTS = [{"messages": [{"role": "user", "content": f"Name {n}."}], "solution": str(n)} for n in range(40)]


class OpenAIWorld:
    """A project with the models `base` and `judge`."""

    def __init__(
        self,
        url: str,
        token: str,
        sessions: sessionmaker[Session],
        project: Project,
        settings: Settings,
        store: ArtifactStore,
        folder: Path,
    ) -> None:
        self.url, self.token, self.sessions, self.project = url, token, sessions, project
        self.settings, self.store, self.folder = settings, store, folder
        self.model("base", "sft", "sft")
        self.model("judge", "reward", "reward_model")

    def client(self, token: str | None = None, path: str = "/v1", **options: Any) -> openai.OpenAI:
        return openai.OpenAI(base_url=self.url + path, api_key=token or self.token, max_retries=0, **options)

    def token_of(self, *scopes: str) -> str:
        """The secret of a new token for the project `default` alone."""
        return token_headers(self.sessions, self.project.id, *scopes)["Authorization"].removeprefix("Bearer ")

    def model(self, name: str, role: ModelRole, method: str) -> None:
        folder = write_model(self.folder / "models" / name, role, method)
        with transaction(self.sessions) as session:
            project = session.get_one(Project, self.project.id)
            made: dict[str, Any] = {"role": role, "method": method, "parent_id": None, "run_id": None}
            register_model(session, self.store, project, name=name, folder=folder, **made)

    def upload(self, client: openai.OpenAI, rows: list[Any], name: str = "rows.jsonl") -> str:
        return client.files.create(file=(name, lines(rows)), purpose="fine-tune").id

    def import_files(self) -> None:
        """Works as the API's own background does: imports in their processes, then the jobs that waited for them."""
        while True:
            with transaction(self.sessions) as session:
                lease = import_claims.claim_next(session, 60, 3)
            if lease is None:
                break
            work(self.sessions, ImportFiles(self.settings.artifact_url), lease)
        start_all(self.sessions, self.store)

    def run_of(self, job: Any) -> Run:
        with transaction(self.sessions) as session:
            return session.scalars(select(Run).where(Run.id == job.steerboard["run_id"])).one()

    def add_worker(self) -> None:
        """An interactive worker that is alive, and does nothing."""
        with transaction(self.sessions) as session:
            now: Any = func.clock_timestamp()
            row = WorkerRow(name="w", pool="interactive", host="h", pid=1, devices={}, holds=[], started_at=now)
            session.add(row)


def lines(rows: list[Any]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()
