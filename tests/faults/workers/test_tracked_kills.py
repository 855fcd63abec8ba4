"""kill -9 of a worker, and of the exporter's process, while a run is exported: its history has each step once."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_stack import SFT, Stack
from sqlalchemy import select

from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings
from steerboard.trackers import service
from steerboard.trackers.exporting.channel import Channel
from steerboard.trackers.exporting.exporters import exporters
from steerboard.trackers.schemas import TrackerCreate
from steerboard.trackers.tables import RunExport
from support.patience import PATIENCE
from support.tracked_points import of_tensorboard

SHORT_LEASE = {"STEERBOARD_LEASE_SECONDS": "4"}
# Steps for longer than exporters wait between two looks.
LONG = {**SFT, "epochs": 30, "checkpoint_every": 40}
EXPORTER = b"steerboard.trackers.destinations.process"


@pytest.fixture
def exporting(stack: Stack, settings: Settings) -> Iterator[Settings]:
    """The server's exporters, to TensorBoard."""
    ours = settings.model_copy(update={"home": stack.home})
    secrets = Secrets(ours)
    with transaction(stack.sessions) as session:
        project = session.get_one(Project, stack.project_id)
        given = TrackerCreate.model_validate({"name": "t", "settings": {"kind": "tensorboard"}})
        service.create(session, ours, secrets, project, given)
    threads = exporters(stack.sessions, ours, secrets)
    threads.start()
    yield ours
    threads.stop(30)


def export_of(stack: Stack, run_id: uuid.UUID) -> RunExport | None:
    with transaction(stack.sessions) as session:
        return session.scalar(select(RunExport).where(RunExport.run_id == run_id))


def exported_step(stack: Stack, run_id: uuid.UUID) -> int:
    export = export_of(stack, run_id)
    return -1 if export is None or export.confirmed_step is None else export.confirmed_step


def exporter_pids() -> list[int]:
    """The processes of trackers that this process started."""
    pids = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and EXPORTER in (entry / "cmdline").read_bytes() and _is_ours(int(entry.name)):
                pids.append(int(entry.name))
        except OSError:  # it has ended
            continue
    return pids


def _is_ours(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        pid = int(fields[1])
    return False


def has_a_batch_in_flight() -> bool:
    """Whether an exporter of this process waits for a tracker's answer."""
    frames = sys._current_frames().values()
    return any(step[0].f_code is Channel._ask.__code__ for frame in frames for step in traceback.walk_stack(frame))


@pytest.mark.long
@pytest.mark.parametrize("also_exporter", [False, True], ids=["worker", "worker and exporter"])
def test_a_worker_killed_while_its_run_is_exported_leaves_no_hole_and_no_step_twice(
    stack: Stack, exporting: Settings, also_exporter: bool
) -> None:
    run_id = stack.create("tracked", LONG)
    first = stack.start_worker("first", **SHORT_LEASE)
    stack.wait(lambda: exported_step(stack, run_id) >= 2, PATIENCE, "nothing was exported", pause=0.002)
    before = exported_step(stack, run_id)
    if also_exporter:
        killed = exporter_pids()
        assert killed
        for pid in killed:  # it takes what it is sent, and writes none of it
            os.kill(pid, signal.SIGSTOP)
        stack.wait(has_a_batch_in_flight, PATIENCE, "no batch was sent", pause=0.002)
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
    first.signal(signal.SIGKILL)
    stack.wait(lambda: not stack.stage_pids(run_id), PATIENCE, "the stage outlived its worker")
    assert stack.run(run_id).state not in ("succeeded", "failed")
    stack.start_worker("second", **SHORT_LEASE)
    (run,) = stack.finish(run_id)
    assert (run.state, run.attempt) == ("succeeded", 2), run.reason

    def is_complete() -> bool:
        export = export_of(stack, run_id)
        return export is not None and export.ended_at is not None

    stack.wait(is_complete, PATIENCE, "the end was not exported", pause=0.2)
    export = export_of(stack, run_id)
    assert export is not None
    points = of_tensorboard(Path(export.folder or ""))
    kept = stack.result(run_id).metrics
    steps = [step for step, _ in points["loss"]]
    assert steps == list(range(steps[0], steps[-1] + 1))
    assert before < steps[-1]
    for name in ("loss", "eval_loss"):
        assert points[name] == sorted((step, round(value, 5)) for (own, step), value in kept.items() if own == name)
