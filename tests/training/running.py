"""Stages under test: their events, and stages as real processes."""

from __future__ import annotations

import json
import os
import random
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest
import torch
from accelerate.state import AcceleratorState
from safetensors.torch import load_file, save_file

from steerboard_contracts.methods import methods, needed_method
from steerboard_contracts.online_config import OnlineConfig
from steerboard_contracts.stage.events import STAGE_EVENT
from steerboard_workers.stages import train
from steerboard_workers.stages.__main__ import main
from steerboard_workers.stages.runtime import EventWriter, Stage
from support.patience import PATIENCE

METRICS = b'"type":"metrics"'


def preference_methods() -> list[str]:
    """Every method of the registry that learns from pairs or thumbs, and so those that are added."""
    offline = {name: spec for name, spec in methods().items() if not issubclass(spec.config, OnlineConfig)}
    return [name for name, spec in offline.items() if {"preferences", "unpaired"} & set(spec.data)]


def with_others(standing_for_all: list[str]) -> list[Any]:
    """Methods that every run of the tests tries; then, in long runs, the other preference methods."""
    others = [name for name in preference_methods() if name not in standing_for_all]
    return [*standing_for_all, *(pytest.param(name, marks=pytest.mark.long) for name in others)]


def data_of(method: str) -> str:
    """The dataset of `data_folder` that a method learns from."""
    kind = needed_method(method).data[0]
    return "labelled" if kind == "instructions" else kind


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
    timed = ("tokens_per_second", "_seconds")
    return {e.step: {k: v for k, v in e.values.items() if not k.endswith(timed)} for e in events if e.type == "metrics"}


def torchrun(processes: int) -> list[str]:
    """A launcher of so many processes, for `run_process`."""
    return [
        *(sys.executable, "-m", "torch.distributed.run"),
        *("--nproc-per-node", str(processes), "--master-port", str(free_port())),
    ]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def run_process(stage: Stage, launcher: list[str] | None = None, **environment: str) -> tuple[int, list, str]:
    """The stage as the platform runs it: exit code, events, standard error."""
    command = launcher or [sys.executable]
    done = subprocess.run(
        [*command, "-m", "steerboard_workers.stages", str(stage.directory)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        timeout=PATIENCE,
        check=False,
    )
    return done.returncode, [STAGE_EVENT.validate_json(line) for line in done.stdout.splitlines()], done.stderr


def run_forked(stage: Stage, limits: dict[int, int] | None = None) -> tuple[int, list, str]:
    """The same in a fork of this process, which has imported torch already, under resource limits."""
    status, out, err = in_fork(lambda: main(stage.directory), limits)
    return status, [STAGE_EVENT.validate_json(line) for line in out.splitlines()], err


def run_ranks(stage: Stage, processes: int = 2) -> tuple[int, list, str]:
    """The same in as many forks as torchrun would start processes: importing takes these longer than such a run."""
    port = free_port()

    def rank(number: int) -> Callable[[], int]:
        def run() -> int:
            os.environ |= {"RANK": str(number), "LOCAL_RANK": str(number), "WORLD_SIZE": str(processes)}
            os.environ |= {"LOCAL_WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            AcceleratorState._reset_state(reset_partial_state=True)  # that of a run in this process, which was alone
            return main(stage.directory)

        return run

    ended = in_forks([rank(number) for number in range(processes)])
    lines = [line for _, out, _ in ended for line in out.splitlines()]
    # One that a signal ended has a negative status.
    return (
        next((status for status, _, _ in ended if status), 0),
        [STAGE_EVENT.validate_json(line) for line in lines],
        ended[0][2],
    )


def in_fork(act: Callable[[], int], limits: dict[int, int] | None = None) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    (ended,) = in_forks([act], limits)
    return ended


def in_forks(acts: Sequence[Callable[[], int]], limits: dict[int, int] | None = None) -> list[tuple[int, str, str]]:
    """The same of several at once."""
    with ExitStack() as files:
        started = []
        for act in acts:
            out, err = (files.enter_context(TemporaryFile()) for _ in range(2))
            started.append((_fork(act, out.fileno(), err.fileno(), limits or {}), out, err))
        ended = []
        for pid, out, err in started:
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            out.seek(0)
            err.seek(0)
            ended.append((status, out.read().decode(), err.read().decode()))
        return ended


def _fork(act: Callable[[], int], out: int, err: int, limits: dict[int, int]) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 70
    try:
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        for limit, size in limits.items():
            resource.setrlimit(limit, (size, size))
        status = act()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def forked(
    stage: Stage,
    attempt: int,
    kill_after: int | None,
    draw: random.Random,
    lines: bytes = METRICS,
    kills_itself: bool = False,
) -> list:
    """Run a stage in a forked process, killed with -9 some time after so many metric (or other) lines, or by itself.
    Its events."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        status = 1
        try:
            spec = stage.spec.model_copy(update={"attempt": attempt})
            events = EventWriter(writer)
            events.write(train.run(Stage(stage.directory, spec, events)))
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    content = b""
    killed = False
    while True:
        if not killed and kill_after is not None and content.count(lines) >= kill_after:
            select.select([], [], [], draw.uniform(0, 0.02))  # anywhere inside a step or a checkpoint's writing
            os.kill(pid, signal.SIGKILL)
            killed = True
        chunk = os.read(reader, 4096)
        if not chunk:
            break
        content += chunk
    os.close(reader)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status == (-signal.SIGKILL if killed or kills_itself else 0)
    complete = content[: content.rfind(b"\n") + 1]
    return [STAGE_EVENT.validate_json(line) for line in complete.splitlines()]


def final_weights(stage: Stage) -> dict[str, torch.Tensor]:
    return load_file(stage.directory / "outputs" / "model" / "model.safetensors")


def ran(stage: Stage) -> dict[int, dict[str, float]]:
    """A training stage in this process; its metrics."""
    AcceleratorState._reset_state(reset_partial_state=True)  # a process trains once, tests many times
    train.run(stage)
    return metrics_of(recorded(stage, "metrics"))


def weights_of(stage: Stage, output: str = "model") -> dict[str, torch.Tensor]:
    return load_file(stage.directory / "outputs" / output / "model.safetensors")


def changed_weights(model: Path, folder: Path, spread: float) -> Path:
    """A copy of a model's folder with noise on its weights."""
    shutil.copytree(model, folder)
    tensors = load_file(folder / "model.safetensors")
    draw = torch.Generator().manual_seed(7)
    moved = {name: t + spread * torch.randn(t.shape, generator=draw) for name, t in tensors.items()}
    save_file(moved, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def with_config(model: Path, folder: Path, **fields: Any) -> Path:
    """A copy of a model's folder with these fields in its config."""
    shutil.copytree(model, folder)
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
    return folder
