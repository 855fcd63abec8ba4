"""kill -9 of `steerboard up`, mid-epoch: servers, worker and stage go with it, and a second `up` finishes the run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_stack import SFT, Shared, Stack
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from steerboard.accounts.tables import Project
from steerboard.platform.database import make_engine, make_sessions, transaction
from steerboard.platform.processes.embedded import EmbeddedServers
from support.patience import PATIENCE


class Up:
    """`steerboard up` on a home of its own, with embedded servers."""

    def __init__(self, home: Path) -> None:
        self.home = home
        ready = home / "ready.json"
        ready.unlink(missing_ok=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("STEERBOARD_")}
        environment |= {
            "STEERBOARD_LEASE_SECONDS": "3",
            "STEERBOARD_HEARTBEAT_SECONDS": "0.5",
            "STEERBOARD_SWEEP_SECONDS": "0.5",
            "STEERBOARD_RETRY_SECONDS": "0.1",
            "STEERBOARD_STAGE_THREADS": "1",
        }
        command = [sys.executable, "-m", "steerboard.cli.main", "up", "--port", "0", "--home", str(home)]
        with (home / "up.log").open("ab") as out:
            self.process = subprocess.Popen(
                [*command, "--ready-file", str(ready)], env=environment, stdout=out, stderr=out, start_new_session=True
            )
        self.ready = ready

    def processes(self) -> list[int]:
        """All that belong to this home, by their command lines."""
        pids = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    # A zombie that no one has reaped yet has no command line any more.
                    if str(self.home).encode() in (entry / "cmdline").read_bytes():
                        pids.append(int(entry.name))
                except OSError:
                    continue
        return pids


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="sb-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def up(home: Path, stack: Stack) -> Iterator[Up]:
    started = Up(home)
    try:
        stack.wait(started.ready.exists, 60, "`steerboard up` did not get ready")
        yield started
    finally:
        started.process.terminate()
        started.process.wait(timeout=PATIENCE)


def stack_of(up: Up, shared: Shared) -> Stack:
    """A stack that looks into a running `steerboard up` and gives it work."""
    sessions = make_sessions(make_engine(EmbeddedServers(up.home).database_url))
    with transaction(sessions) as session:
        project_id = session.scalars(select(Project.id)).one()
    environment = {"STEERBOARD_ARTIFACT_URL": f"file://{up.home / 'artifacts'}"}
    inside = Stack(sessions, project_id, environment, up.home, shared)
    inside.prepare()
    return inside


@pytest.mark.long
def test_a_run_survives_the_kill_of_everything_bit_for_bit(shared: Shared, stack: Stack, up: Up) -> None:
    expected = stack.undisturbed(SFT)
    inside = stack_of(up, shared)
    run_id = inside.create("sft", SFT)
    inside.wait_for_step(run_id, 12)
    up.process.send_signal(signal.SIGKILL)
    up.process.wait()
    inside.wait(lambda: not up.processes() and not inside.stage_pids(run_id), 10, "something outlived it")
    again = Up(up.home)
    try:
        inside.wait(again.ready.exists, 60, "`steerboard up` did not get ready again")
        (run,) = inside.finish(run_id)
        assert (run.state, run.attempt) == ("succeeded", 2), run.reason
        assert inside.result(run_id) == expected
    finally:
        again.process.terminate()
        again.process.wait(timeout=PATIENCE)


@pytest.mark.long
def test_a_run_survives_the_kill_of_the_database(shared: Shared, stack: Stack, up: Up) -> None:
    expected = stack.undisturbed(SFT)
    inside = stack_of(up, shared)
    run_id = inside.create("sft", SFT)
    inside.wait_for_step(run_id, 12)
    postmaster = _postmaster(up)
    assert postmaster is not None
    os.kill(postmaster, signal.SIGKILL)
    # Processes of the killed one may still answer for a moment.
    inside.wait(lambda: _postmaster(up) not in (None, postmaster), 30, "the database did not come back")
    inside.wait(lambda: answers(inside, run_id), 30, "the database does not answer")
    (run,) = inside.finish(run_id)
    assert run.state == "succeeded", run.reason
    assert inside.result(run_id) == expected


def _postmaster(up: Up) -> int | None:
    """Its process id; None while there is none."""
    try:
        return int((up.home / "postgres" / "postmaster.pid").read_text().splitlines()[0])
    except (FileNotFoundError, IndexError):
        return None


def answers(stack: Stack, run_id: uuid.UUID) -> bool:
    try:
        return stack.run(run_id) is not None
    except OperationalError:
        return False
