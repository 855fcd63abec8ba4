"""Stages under test: their events, and stages as real processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

from steerboard_contracts.stage import STAGE_EVENT
from steerboard_workers.stages.runtime import EventWriter, Stage


class RecordingWriter(EventWriter):
    def __init__(self) -> None:
        super().__init__(-1)
        self.events: list = []

    def write(self, event, *, any_rank: bool = False) -> None:
        self.events.append(event)


def recorded(stage: Stage, kind: str) -> list:
    return [event for event in stage._events.events if event.type == kind]


def metrics_of(events: list) -> dict[int, dict[str, float]]:
    """Metric values by step, the last word on each; timings are left out."""
    return {
        e.step: {k: v for k, v in e.values.items() if k != "tokens_per_second"} for e in events if e.type == "metrics"
    }


def torchrun(processes: int) -> list[str]:
    """A launcher of so many processes, for `run_process`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return [
        *(sys.executable, "-m", "torch.distributed.run"),
        *("--nproc-per-node", str(processes), "--master-port", str(port)),
    ]


def run_process(stage: Stage, launcher: list[str] | None = None, **environment: str) -> tuple[int, list, str]:
    """The stage as the platform runs it: exit code, events, standard error."""
    command = launcher or [sys.executable]
    done = subprocess.run(
        [*command, "-m", "steerboard_workers.stages", str(stage.directory)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        timeout=200,
        check=False,
    )
    return done.returncode, [STAGE_EVENT.validate_json(line) for line in done.stdout.splitlines()], done.stderr
