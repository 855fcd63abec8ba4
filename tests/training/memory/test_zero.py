"""ZeRO over two processes trains as one process does, survives kill -9, and hands over whole models and checkpoints."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

import pytest
import running
import torch
from running import data_of, metrics_of, preference_methods, run_process, run_ranks, torchrun
from safetensors.torch import load_file

from steerboard_contracts.stage.events import STAGE_EVENT
from steerboard_workers.stages.models.model_io import load_policy, load_reward_model
from steerboard_workers.stages.runtime import Stage

CONFIG = {
    "run": "train",
    "batch": 8,
    "epochs": 3,
    "lr": 5e-4,
    "max_steps": 10,
    "max_length": 96,
    "micro_batch": 3,
    "checkpoint_every": 3,
    "checkpoint_seconds": 0,
    "weight_decay": 1.0,  # so much that it shows which parameters are decayed
}


@pytest.fixture(scope="module")
def started(make_stage, wide_model):
    def start(method: str, **config) -> Stage:
        data = data_of(method)
        return make_stage({**CONFIG, "method": method, **config}, model=wide_model, data=data)

    return start


@pytest.fixture(scope="module")
def alone(started):
    """Metrics and final weights of one process's run without DeepSpeed, computed once a method."""
    known: dict[str, tuple[dict, dict]] = {}

    def of(method: str):
        if method not in known:
            stage = started(method)
            known[method] = running.ran(stage), final_weights(stage)
        return known[method]

    return of


def final_weights(stage: Stage) -> dict[str, torch.Tensor]:
    return load_file(stage.directory / "outputs" / "model" / "model.safetensors")


def ran(stage: Stage, processes: int) -> dict[int, dict[str, float]]:
    code, events, stderr = run_ranks(stage, processes)
    assert code == 0, stderr[-3000:]
    assert [event.type for event in events].count("succeeded") == 1
    return metrics_of(events)


def check_equal(metrics: dict, stage: Stage, expected: tuple[dict, dict]) -> None:
    losses, weights = expected
    assert metrics.keys() == losses.keys()
    for step, values in losses.items():
        assert metrics[step]["loss"] == pytest.approx(values["loss"], rel=1e-4)
        assert metrics[step]["grad_norm"] == pytest.approx(values["grad_norm"], rel=1e-2)
    ours = final_weights(stage)
    assert ours.keys() == weights.keys()
    for name, tensor in weights.items():
        # A fifth of a step. Adam makes steps of rounding errors where a gradient is almost zero: one process that cuts
        # its batch into other micro-batches differs by 6.4e-5 in such a weight.
        torch.testing.assert_close(ours[name], tensor, rtol=1e-3, atol=CONFIG["lr"] / 5)


# ZeRO-3 shards whatever ZeRO-2 does, and more.
EVERY = [(name, "zero2") for name in ("sft", "dpo", "kto")]
EVERY += [(name, "zero3") for name in {"sft", "decision_transformer", *preference_methods()}]


@pytest.mark.long
@pytest.mark.parametrize(("method", "strategy"), sorted(EVERY))
def test_two_processes_of_zero_train_as_one_without(started, alone, method, strategy):
    stage = started(method, strategy=strategy)
    check_equal(ran(stage, 2), stage, alone(method))
    load = load_reward_model if method == "reward_model" else load_policy
    assert load(stage.directory / "outputs" / "model", device="cpu").info.method == method


@pytest.mark.long
def test_what_ends_a_process_at_its_very_end_is_no_failure_of_a_run_whose_result_is_written(started, tmp_path):
    """Threads that talk to another process have ended one by SIGABRT while its interpreter was torn down."""
    torn_down = "import atexit, os\nif 'RANK' in os.environ:\n    atexit.register(os.abort)\n"
    (tmp_path / "sitecustomize.py").write_text(torn_down)
    code, events, stderr = run_process(started("sft", max_steps=2), torchrun(2), PYTHONPATH=str(tmp_path))
    assert (code, [event.type for event in events].count("succeeded")) == (0, 1), stderr[-2000:]


def killed(stage: Stage, processes: int, after_steps: int) -> None:
    """Start the stage and kill every process of it with -9 after that many metric lines."""
    process = subprocess.Popen(
        [*torchrun(processes), "-m", "steerboard_workers.stages", str(stage.directory)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1", "STEERBOARD_TEST_MARK": str(stage.directory)},
        start_new_session=True,
    )
    assert process.stdout is not None
    seen = 0
    for line in process.stdout:
        seen += STAGE_EVENT.validate_json(line).type == "metrics"
        if seen == after_steps:
            break
    assert seen == after_steps
    kill_marked(str(stage.directory))
    process.wait()
    process.stdout.close()


def kill_marked(mark: str) -> None:
    """torchrun gives each of its processes a session of its own."""
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            if f"STEERBOARD_TEST_MARK={mark}".encode() in Path(f"/proc/{int(entry)}/environ").read_bytes().split(b"\0"):
                os.kill(int(entry), signal.SIGKILL)


def resumed(stage: Stage, processes: int, **config: str) -> dict[int, dict[str, float]]:
    """The next attempt, with changes of the config; its metrics, those of the steps before among them."""
    changed = stage.spec.config.model_copy(update=config)
    spec = stage.spec.model_copy(update={"attempt": 2, "config": changed})
    (stage.directory / "stage.json").write_text(spec.model_dump_json())
    code, events, stderr = run_ranks(stage, processes)
    assert code == 0, stderr[-3000:]
    assert any(event.type == "log" and "resumed from step 6" in event.message for event in events)
    return metrics_of(events)


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["zero2", "zero3"])
@pytest.mark.parametrize("resumed_by", [2, 1])
def test_killed_zero_resumes_on_as_many_processes_or_fewer(started, alone, strategy, resumed_by):
    stage = started("sft", strategy=strategy)
    killed(stage, 2, 8)
    check_equal(resumed(stage, resumed_by), stage, alone("sft"))


@pytest.mark.long
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"strategy": "ddp"}, {"strategy": "zero3", "offload": "all"}),
        ({"strategy": "zero2", "offload": "optimiser"}, {"strategy": "ddp", "offload": "none"}),
    ],
)
def test_a_run_resumes_under_another_strategy(started, alone, before, after):
    stage = started("sft", **before)
    killed(stage, 2, 8)
    check_equal(resumed(stage, 2, **after), stage, alone("sft"))


@pytest.mark.long
@pytest.mark.parametrize(("strategy", "offload"), [("zero2", "optimiser"), ("zero3", "optimiser"), ("zero3", "all")])
def test_offload_changes_no_result(started, alone, strategy, offload):
    stage = started("sft", strategy=strategy, offload=offload, gradient_checkpointing=True)
    check_equal(ran(stage, 2), stage, alone("sft"))


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["zero2", "zero3"])
def test_bf16_learns_as_float32_does(started, alone, strategy):
    stage = started("sft", strategy=strategy, precision="bf16")
    metrics = ran(stage, 2)
    losses, _ = alone("sft")
    for step in losses:
        assert metrics[step]["loss"] == pytest.approx(losses[step]["loss"], rel=2e-2)
    assert final_weights(stage)["model.embed_tokens.weight"].dtype is torch.float32


@pytest.mark.long
def test_a_checkpoint_of_ddp_and_of_zero_are_alike(started):
    """The same names and, up to rounding, the same values."""
    folders = []
    for strategy in ("ddp", "zero3"):
        stage = started("sft", strategy=strategy, max_steps=7)
        ran(stage, 2)
        folders.append(stage.checkpoints / "a1-step-00000006" / "tensors-00001.safetensors")
    ours, theirs = (load_file(path) for path in folders)
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        torch.testing.assert_close(theirs[name], tensor, rtol=1e-2, atol=1e-5)
