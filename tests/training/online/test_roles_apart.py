"""Roles on devices of their own: the same run as with all of them together, also when their processes are killed."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from running import metrics_of, run_process, torchrun, weights_of
from torch.testing import assert_close

from steerboard_contracts.placement import RoleNodes, Unit, assign
from steerboard_contracts.stage.events import STAGE_EVENT
from steerboard_contracts.stage.inputs import ModelInput
from steerboard_contracts.stage.spec import STAGE_FILE
from steerboard_workers.stages import train
from steerboard_workers.stages.roles.placed_unit import PlacedUnit
from steerboard_workers.stages.roles.processes import RoleProcess
from steerboard_workers.stages.roles.ray_node import STAGE_VARIABLE
from steerboard_workers.stages.runtime import Stage
from support.patience import PATIENCE

QUICK = {
    "run": "train",
    "method": "grpo",
    "kl_weight": 0.05,
    "batch": 6,
    "max_length": 96,
    "checkpoint_every": 0,
    "lr": 5e-3,
    "max_steps": 4,
    "max_new_tokens": 8,
    "answers": 4,
    "evaluate_rows": 4,
}
ALL = {"rollout": 2, "rewards": 1, "reference": 1}


@pytest.fixture(scope="module")
def placed(make_stage, base_model, reward_model):
    """placed(placement, **config) -> a Stage whose worker has one node with a processor."""

    def start(placement: dict[str, int] | None, **config) -> Stage:
        stage = make_stage({**QUICK, "placement": placement or {}, **config}, model=base_model)
        reward = ModelInput(name="reward", path=str(reward_model), content_hash="r")
        changes = {"inputs": {**stage.spec.inputs, "reward": reward}, "threads": 1}
        spec = stage.spec.model_copy(update=changes)
        if placement:
            spec.roles = RoleNodes(nodes=assign(spec.config.placement.units(), 1, 0))
        (stage.directory / STAGE_FILE).write_text(spec.model_dump_json())
        return Stage(stage.directory, spec, stage._events)

    return start


@pytest.fixture(scope="module")
def together(placed):
    """together(**config) -> the stage that has run without units, and its metrics: once for all tests."""
    made: dict[str, tuple[Stage, dict[int, dict[str, float]]]] = {}

    def run(**config) -> tuple[Stage, dict[int, dict[str, float]]]:
        key = json.dumps(config, sort_keys=True)
        if key not in made:
            stage = placed(None, **config)
            made[key] = stage, finished(stage)
        return made[key]

    return run


def finished(stage: Stage, launcher: list[str] | None = None) -> dict[int, dict[str, float]]:
    code, events, log = run_process(stage, launcher)
    assert code == 0, log[-5000:]
    return metrics_of(events)


def told(metrics: dict[int, dict[str, float]]) -> dict[int, dict[str, float]]:
    """The metrics without the rounding of a sampler, which depends on what is sampled together."""
    return {
        step: {name: value for name, value in values.items() if not name.startswith("sampler_")}
        for step, values in metrics.items()
    }


def assert_same_run(stage: Stage, other: Stage) -> None:
    for name, tensor in weights_of(other).items():
        assert_close(weights_of(stage)[name], tensor, rtol=0, atol=0)


class UnitsHere:
    """Units in this process in place of Ray, which get copies of all they are asked."""

    ray = SimpleNamespace(
        put=lambda values: values,
        exceptions=SimpleNamespace(RayActorError=ConnectionError, OutOfMemoryError=MemoryError, RayError=OSError),
    )

    def __init__(self, stage: Stage, roles: RoleNodes) -> None:
        self._units = [unit for share in roles.nodes for unit in share.units]

    def units(self, role: str) -> list[PlacedUnit]:
        return [PlacedUnit(self, unit) for unit in self._units if unit.role == role]

    def start(self, unit: Unit) -> SimpleNamespace:
        process = RoleProcess()

        def remote(method: str, *arguments: Any) -> Any:
            return copied(process.do(method, *copied(arguments)))

        return SimpleNamespace(do=SimpleNamespace(remote=remote))

    def result(self, pending: Any, asked: str) -> Any:
        return pending

    def log(self, text: str) -> None: ...

    def close(self) -> None: ...


def copied(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


def test_units_compute_what_training_does_without_them(placed, monkeypatch):
    """The same with Ray and processes of their own, below, takes longer."""
    apart, together = placed(ALL, max_steps=2), placed(None, max_steps=2)
    monkeypatch.setenv(STAGE_VARIABLE, str(apart.directory))
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(get=lambda values: values))
    monkeypatch.setattr("steerboard_workers.stages.roles.apart.Cluster", UnitsHere)
    for stage in (apart, together):
        train.run(stage)
    assert told(metrics_of(apart._events.events)) == told(metrics_of(together._events.events))
    assert_same_run(apart, together)


@pytest.mark.long
@pytest.mark.parametrize("placement", [{"rollout": 1, "rewards": 1}, ALL], ids=["some", "all"])
def test_roles_apart_make_the_same_model_bit_for_bit(placed, together, placement):
    apart, (other, expected) = placed(placement), together()
    done = finished(apart)
    assert told(done) == told(expected)
    assert_same_run(apart, other)
    assert not units(apart)


@pytest.mark.long
@pytest.mark.parametrize("killed", ["rollout", "frozen"])
def test_a_killed_unit_is_replaced_and_the_run_stays_the_same(placed, together, killed):
    apart, (other, _) = placed(ALL, max_steps=8), together(max_steps=8)
    process = begun(apart)
    seen, lost = b"", False
    for line in process.stdout:
        seen += line
        if b'"type":"metrics"' in line and not lost:
            lost = True
            # Units that sample were started first.
            both = units(apart)
            assert len(both) == 4
            for unit in both[:2] if killed == "rollout" else both[2:]:
                unit.send_signal(signal.SIGKILL)
    assert process.wait() == 0
    events = [STAGE_EVENT.validate_json(line) for line in seen.splitlines()]
    assert any("was lost, and is being restarted" in event.message for event in events if event.type == "log")
    assert_same_run(apart, other)


@pytest.mark.long
def test_a_unit_that_dies_again_and_again_ends_the_attempt(placed):
    stage = placed({"rollout": 1}, max_steps=2000, epochs=500)
    process = begun(stage)
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        for unit in units(stage):
            unit.send_signal(signal.SIGKILL)
        time.sleep(0.5)
    assert process.wait(10) == 1
    last = STAGE_EVENT.validate_json(process.stdout.read().splitlines()[-1])
    assert (last.type, last.code, last.retryable) == ("failed", "engine_failed", True)
    assert "rollout 1 was lost 4 times" in last.detail


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["ddp", "zero3"])
def test_two_processes_train_and_share_the_roles_apart(placed, together, strategy):
    steps, (_, expected) = finished(placed(ALL, strategy=strategy), torchrun(2)), together()
    for step, values in expected.items():
        for name in ("loss", "reward", "kl"):
            if name in values:
                assert steps[step][name] == pytest.approx(values[name], rel=1e-3, abs=1e-4), (step, name)


@pytest.mark.long
@pytest.mark.parametrize("config", [{"lora": {"rank": 4}}, {"staleness": 1, "sampler_weight_cap": 2, "lr": 1e-3}])
def test_adapters_and_sampling_ahead_work_with_engines_apart(placed, config):
    metrics = finished(placed({"rollout": 1}, **config))
    assert metrics[1]["sampler_difference_max"] < 1e-4
    assert all(values["ratio_error"] < 1e-4 for values in metrics.values() if "ratio_error" in values)
    later = metrics[3]["sampler_difference_max"]
    assert later > 1e-3 if "staleness" in config else later < 1e-4


@pytest.mark.long
def test_an_error_of_a_unit_is_the_runs_own(placed, tmp_path):
    stage = placed({"rewards": 1})
    spec = stage.spec.model_copy(
        update={
            "inputs": {
                **stage.spec.inputs,
                "reward": ModelInput(name="reward", path=stage.spec.inputs["model"].path, content_hash="m"),
            }
        }
    )
    (stage.directory / STAGE_FILE).write_text(spec.model_dump_json())
    code, events, log = run_process(stage)
    assert code == 1
    assert (events[-1].type, events[-1].code, events[-1].retryable) == ("failed", "wrong_role", False), log[-3000:]


def begun(stage: Stage) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "steerboard_workers.stages", str(stage.directory)],
        stdout=subprocess.PIPE,
        stderr=(stage.directory / "log").open("wb"),
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def units(stage: Stage) -> list[psutil.Process]:
    """Processes of units of this stage, the oldest first. Ray's own, without which a node dies, have such names too."""
    mark = f"STEERBOARD_ROLE_STAGE={stage.directory}".encode()
    processes = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        if not " ".join(process.info["cmdline"] or []).startswith("ray::RoleProcess"):
            continue
        try:
            variables = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if mark in variables:
            processes.append(process)
    return sorted(processes, key=lambda process: process.create_time())
