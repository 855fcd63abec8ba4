"""A project with a policy and data that are pushed, and a worker that does it."""

from __future__ import annotations

import threading
import uuid
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.database import new_id, transaction
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry import service as registry
from steerboard.runs.state import claims
from steerboard.runs.tables import WorkerRow
from steerboard_contracts.models import ModelInfo
from steerboard_workers.supervisor.device_group import DeviceGroup
from steerboard_workers.supervisor.execution import Supervisor
from support.models.model_folders import write_model


class PushWorld:
    def __init__(
        self, client: httpx.Client, sessions: sessionmaker[Session], store: ArtifactStore, settings: Settings
    ) -> None:
        self.client, self.sessions = client, sessions
        self._supervisor = Supervisor(sessions, store, settings, group=DeviceGroup(), stopping=threading.Event())

    def url(self, path: str) -> str:
        return f"/api/v1/projects/default/{path}"

    def get(self, path: str, **params: Any) -> Any:
        answer = self.client.get(self.url(path), params=params)
        assert answer.is_success, answer.text
        return answer.json()

    def work_off(self) -> bool:
        """The next run is executed to its end, if there is one."""
        with transaction(self.sessions) as session:
            claim = claims.claim_next(session, pool="default", owner="w", worker="w", devices=1, lease_seconds=30)
        if claim is not None:
            self._supervisor.execute(claim)
        return claim is not None

    def living_worker(self) -> None:
        with transaction(self.sessions) as session:
            devices: dict[str, Any] = {"ids": [], "gpus": [], "memory": 8 << 30}
            session.add(WorkerRow(id=new_id(), name="w", pool="default", host="h", pid=1, devices=devices))


def register(
    sessions: sessionmaker[Session],
    store: ArtifactStore,
    project: Project,
    folder: Path,
    name: str,
    info: ModelInfo,
    parent_id: uuid.UUID | None = None,
    run_id: uuid.UUID | None = None,
) -> uuid.UUID:
    """A model without weights worth the name, in `folder`/`name`; files that already exist stay."""
    write_model(folder / name, info.role, info.method, name.encode())
    (folder / name / "steerboard.json").write_text(info.model_dump_json())
    return enter(sessions, store, project, folder / name, info, parent_id, run_id)


def enter(
    sessions: sessionmaker[Session],
    store: ArtifactStore,
    project: Project,
    folder: Path,
    info: ModelInfo,
    parent_id: uuid.UUID | None = None,
    run_id: uuid.UUID | None = None,
) -> uuid.UUID:
    """The folder as a model of its name."""
    with transaction(sessions) as session:
        made = registry.register_model(
            session,
            store,
            project,
            name=folder.name,
            folder=folder,
            role=info.role,
            method=info.method,
            parent_id=parent_id,
            run_id=run_id,
        )
        return made.id
