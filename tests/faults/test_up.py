"""kill -9 of `steerboard up`, mid-epoch: servers, worker and stage go with it, and a second `up` finishes the run."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_stack import SFT, Shared, Stack
from sqlalchemy import select

from steerboard.accounts.tables import Project
from steerboard.platform.database import make_engine, make_sessions, transaction
from steerboard.platform.embedded import EmbeddedServers


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
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    # A zombie that nobody has reaped yet has no command line any more.
                    if str(self.home).encode() in (entry / "cmdline").read_bytes():
                        found.append(int(entry.name))
                except OSError:
                    continue
        return found


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="sb-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_a_run_survives_the_kill_of_everything_bit_for_bit(shared: Shared, home: Path, stack: Stack) -> None:
    expected = stack.undisturbed(SFT)
    first = Up(home)
    try:
        stack.wait(first.ready.exists, 60, "`steerboard up` did not get ready")
        engine = make_engine(EmbeddedServers(home).database_url)
        sessions = make_sessions(engine)
        with transaction(sessions) as session:
            project_id = session.scalars(select(Project.id)).one()
        environment = {"STEERBOARD_ARTIFACT_URL": f"file://{home / 'artifacts'}"}
        broken = Stack(sessions, project_id, environment, home, shared)
        broken.prepare()
        run_id = broken.create("sft", SFT)
        broken.wait_for_step(run_id, 12)
        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
        broken.wait(lambda: not first.processes() and not broken.stage_pids(run_id), 10, "something outlived it")
    finally:
        first.process.kill()
    engine.dispose()
    second = Up(home)
    try:
        broken.wait(second.ready.exists, 60, "`steerboard up` did not get ready again")
        (run,) = broken.finish(run_id)
        assert (run.state, run.attempt) == ("succeeded", 2), run.reason
        assert broken.result(run_id) == expected
        assert json.loads(second.ready.read_text())["url"]
        engine.dispose()
    finally:
        second.process.send_signal(signal.SIGTERM)
        second.process.wait(timeout=30)
