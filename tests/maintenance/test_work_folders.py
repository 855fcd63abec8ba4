"""A worker's own disk keeps what a run may still need, and the rest goes."""

from __future__ import annotations

import datetime as dt
import os
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from maintenance_world import KeptWorld
from sqlalchemy import Engine, text

from steerboard.maintenance.work_folders import clear
from steerboard.platform.database import new_id, transaction
from steerboard.platform.settings import Settings
from steerboard.platform.storage.local_cache import LocalCache
from steerboard.runs.state.claims import Claim
from steerboard.runs.tables import Run
from steerboard_workers.supervisor.preparation import prepare
from steerboard_workers.supervisor.workspace import Workspace
from steerboard_workers.work_cleaning import keep_clean
from support.patience import wait_until

NOW = dt.timedelta(0)
OLD = dt.timedelta(days=30)


@pytest.fixture
def work(world: KeptWorld, home: Path) -> Path:
    folder = home / "work" / str(world.run_id)
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "checkpoints" / "weights").write_bytes(b"x" * 1000)
    return folder


@pytest.mark.parametrize(
    ("state", "ended", "goes"),
    [
        ("running", None, False),
        ("queued", None, False),
        ("failed", "1 day", False),
        ("failed", "40 days", True),
        ("cancelled", "40 days", True),
        ("succeeded", "1 day", True),
    ],
)
def test_checkpoints_go_when_their_run_has_ended_long_ago(
    world: KeptWorld, engine: Engine, home: Path, work: Path, state: str, ended: str | None, goes: bool
) -> None:
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE runs SET state = :state, ended_at = now() - CAST(:ended AS interval) WHERE id = :id"),
            {"state": state, "ended": ended, "id": world.run_id},
        )
    assert clear(engine, home, None, age=OLD, dry_run=True).folders == int(goes)
    assert work.exists()
    done = clear(engine, home, None, age=OLD)
    assert (done.folders, done.bytes) == ((1, 1000) if goes else (0, 0))
    assert work.exists() is not goes


def test_a_folder_in_which_an_attempt_works_stays(world: KeptWorld, engine: Engine, home: Path, work: Path) -> None:
    with engine.begin() as connection:
        connection.execute(text("UPDATE runs SET state = 'succeeded', ended_at = now()"))
    with Workspace(home, Claim(world.run_id, 1, "me")) as workspace:
        workspace.open()
        assert clear(engine, home, None, age=NOW).folders == 0
        assert (work / "checkpoints" / "weights").exists()
    assert clear(engine, home, None, age=NOW).folders == 1
    with Workspace(home, Claim(world.run_id, 2, "me")) as workspace:
        workspace.open()
        assert workspace.directory.is_dir()


def test_inputs_of_an_attempt_stay_in_the_cache_until_it_ends(world: KeptWorld, settings: Settings, home: Path) -> None:
    with transaction(world.sessions) as session:
        run = session.get_one(Run, world.run_id)
    with Workspace(home, Claim(run.id, 1, "me")) as workspace:
        workspace.open()
        spec = prepare(
            world.sessions, world.store, settings, run, home, workspace.directory, workspace.holds, threads=1
        )
        rows = Path(spec.inputs["parts.0"].path)  # type: ignore[union-attr]
        LocalCache(home / "cache", 1).make_room(1 << 30)
        assert rows.read_bytes().count(b"\n") == 50
        again = prepare(
            world.sessions, world.store, settings, run, home, workspace.directory, workspace.holds, threads=1
        )
        assert again.inputs == spec.inputs
    LocalCache(home / "cache", 1).make_room(1 << 30)
    assert not rows.exists()


def test_a_folder_of_a_run_that_nobody_knows_stays_until_it_is_old(
    world: KeptWorld, engine: Engine, home: Path
) -> None:
    unknown, foreign = home / "work" / str(new_id()), home / "work" / "not-a-run"
    for folder in (unknown, foreign):
        folder.mkdir(parents=True)
    assert clear(engine, home, None, age=OLD).folders == 0
    then = time.time() - 60 * 86400
    for folder in (unknown, foreign):
        os.utime(folder, (then, then))
    assert clear(engine, home, None, age=OLD).folders == 1
    assert foreign.exists()


def test_what_a_further_node_of_a_worker_left_goes_too(world: KeptWorld, engine: Engine, home: Path) -> None:
    """Killed, a node leaves the folder of its part; its inputs are cached apart from the first node's."""
    left, node = home / "nodes" / "1" / "work" / str(world.run_id), home / "nodes" / "1"
    (left / "a1").mkdir(parents=True)

    def fill(folder: Path) -> None:
        (folder / "f").write_bytes(b"x" * (3 << 20))

    with ExitStack() as holds:
        LocalCache(node / "cache").take("models", "m", size=0, fill=fill, intact=lambda _: True, holds=holds)
    assert clear(engine, home, 1, age=OLD).folders == 0
    assert left.exists()
    assert not (node / "cache" / "models" / "m").exists()
    with engine.begin() as connection:
        connection.execute(text("UPDATE runs SET state = 'succeeded', ended_at = now()"))
    assert clear(engine, home, 1, age=OLD, dry_run=True).folders == 1
    assert clear(engine, home, 1, age=OLD).folders == 1
    assert not left.exists()


def test_a_worker_removes_folders_of_ended_runs_by_itself(
    world: KeptWorld, engine: Engine, home: Path, work: Path
) -> None:
    stopping = threading.Event()
    settings = Settings(home=home, work_days=30)
    worker = threading.Thread(target=keep_clean, args=(engine, settings, stopping, 0.05))
    worker.start()
    try:
        with engine.begin() as connection:
            connection.execute(text("UPDATE runs SET state = 'failed', ended_at = now() - interval '40 days'"))
        wait_until(lambda: not work.exists())
    finally:
        stopping.set()
        worker.join()
