"""Workers of one machine share its cores, and a run keeps the threads that it began with."""

from __future__ import annotations

import datetime as dt
import json
import socket
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.imports.loading import import_file
from steerboard.platform.database import new_id, transaction
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.playground.claims import POOL as INTERACTIVE
from steerboard.runs import queries
from steerboard.runs.state.lifecycle import InputRef
from steerboard.runs.tables import Run, WorkerRow
from steerboard_workers.cpu_threads import usable_cores
from steerboard_workers.supervisor.device_group import DeviceGroup
from steerboard_workers.supervisor.execution import Supervisor
from support.rows.run_world import World

CORES = usable_cores()
pytestmark = pytest.mark.skipif(CORES < 2, reason="one core cannot be shared")

# A stage records what its libraries will read.
WITNESS = """
import os, sys
if "steerboard_workers.stages" in sys.orig_argv:
    with open(os.path.join(os.path.dirname(__file__), "threads"), "w") as file:
        file.write(os.environ["OMP_NUM_THREADS"] + " " + os.environ["MKL_NUM_THREADS"])
"""


@pytest.fixture
def run_id(world: World, project: Project, tmp_path: Path) -> uuid.UUID:
    """A run whose stage needs no torch."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"prompt": f"Say {n}", "response": str(n)}) + "\n" for n in range(40)))
    with transaction(world.sessions) as session:
        here = session.get_one(Project, project.id)
        dataset = import_file(session, here, path=rows, name="tiny", kind="instructions").dataset.id
    config = {"run": "mix", "parts": [{}], "size": 10}
    return world.create(config=config, inputs={"parts.0": InputRef(dataset=dataset)})


@pytest.fixture
def add_worker(sessions: sessionmaker[Session]) -> Callable[..., None]:
    def add(pool: str = "default", host: str = socket.gethostname(), silent_seconds: float = 0) -> None:
        heard = func.clock_timestamp() - dt.timedelta(seconds=silent_seconds)
        with transaction(sessions) as session:
            session.add(WorkerRow(id=new_id(), name="w", pool=pool, host=host, pid=1, devices={}, heartbeat_at=heard))

    return add


Attempt = Callable[..., int | None]


@pytest.fixture
def attempt(world: World, run_id: uuid.UUID, settings: Settings, store: ArtifactStore) -> Attempt:
    """Has a worker take the run. The threads of the attempt as the API shows them."""

    def execute(*, stopping: bool = False, **changed: Any) -> int | None:
        claim = world.claim()
        assert claim is not None
        assert claim.run_id == run_id
        stop = threading.Event()
        if stopping:
            stop.set()
        used = settings.model_copy(update=changed)
        Supervisor(world.sessions, store, used, group=DeviceGroup(), stopping=stop).execute(claim)
        with transaction(world.sessions) as session:
            return queries.detail(session, session.get_one(Run, run_id)).attempts[-1].threads

    return execute


def test_the_stage_of_the_only_worker_of_a_machine_has_all_cores(
    attempt: Attempt, add_worker: Callable[..., None]
) -> None:
    add_worker()
    add_worker(pool=INTERACTIVE)
    add_worker(host="another-machine")
    add_worker(silent_seconds=3600)
    assert attempt() == CORES


def test_the_stage_of_one_of_two_workers_has_half_of_the_cores(
    attempt: Attempt, add_worker: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITNESS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    add_worker()
    add_worker(pool="another")
    assert attempt() == CORES // 2
    assert (tmp_path / "threads").read_text() == f"{CORES // 2} {CORES // 2}"


def test_more_workers_than_cores_leave_one_thread_to_each(attempt: Attempt) -> None:
    assert attempt(machine_workers=CORES + 1) == 1


def test_a_run_that_resumes_beside_more_workers_keeps_its_threads(
    attempt: Attempt, add_worker: Callable[..., None]
) -> None:
    add_worker()
    assert attempt(stopping=True) == CORES
    add_worker()
    assert attempt() == CORES


def test_the_operators_number_of_threads_wins_also_on_resume(attempt: Attempt, add_worker: Callable[..., None]) -> None:
    add_worker()
    assert attempt(stopping=True) == CORES
    assert attempt(stage_threads=CORES + 3) == CORES + 3
