"""Importing small files, and the data that only some machines have."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets import service
from steerboard.datasets.schemas import ImportReport
from steerboard.platform.database import transaction

SHARED = Path(__file__).parents[3] / "shared" / "data"

Importer = Callable[..., ImportReport]


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
            return service.import_file(session, project, path=path, name=name, **options)

    return run


@pytest.fixture
def shared() -> Path:
    """Data that the repository does not carry."""
    if not SHARED.is_dir():
        pytest.skip(f"the shared test data is not at {SHARED}")
    return SHARED
