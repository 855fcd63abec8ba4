"""Importing small files, and the data that only some machines have."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cleaning_world import Cleaning
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.imports.execution.runner import ImportRunner
from steerboard.datasets.imports.files import ImportFiles
from steerboard.datasets.imports.loading import import_file
from steerboard.datasets.schemas import ImportReport
from steerboard.platform.database import transaction
from steerboard.platform.settings import Settings

SHARED = Path(__file__).parents[3] / "shared" / "data"

Importer = Callable[..., ImportReport]


@pytest.fixture
def cleaning(client: TestClient, sessions: sessionmaker[Session], tmp_path: Path) -> Cleaning:
    return Cleaning(client, sessions, tmp_path)


@pytest.fixture
def write_jsonl(tmp_path: Path) -> Callable[[Iterable[Any]], Path]:
    """Rows (or raw lines, as text) as a jsonl file."""

    def write(rows: Iterable[Any], name: str = "rows.jsonl") -> Path:
        path = tmp_path / name
        with path.open("w") as file:
            for row in rows:
                file.write((row if isinstance(row, str) else json.dumps(row)) + "\n")
        return path

    return write


@pytest.fixture
def import_path(sessions: sessionmaker[Session], project: Project) -> Importer:
    """`service.import_file` in a transaction of its own."""

    def run(path: Path, name: str = "rows", **options: Any) -> ImportReport:
        with transaction(sessions) as session:
            return import_file(session, project, path=path, name=name, **options)

    return run


@pytest.fixture
def shared() -> Path:
    """Data that the repository does not carry."""
    if not SHARED.is_dir():
        pytest.skip(f"the shared test data is not at {SHARED}")
    return SHARED


@pytest.fixture
def runner(app: FastAPI, sessions: sessionmaker[Session], settings: Settings) -> Iterator[ImportRunner]:
    """A runner in the API's process, as in `steerboard up`."""
    app.state.import_runner = ImportRunner(sessions, settings.model_copy(update={"retry_seconds": 0.1})).start()
    yield app.state.import_runner
    app.state.import_runner.stop()


@pytest.fixture
def files(settings: Settings) -> ImportFiles:
    return ImportFiles(settings.artifact_url)
