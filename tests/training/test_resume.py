"""Killed anywhere and resumed, a run ends bit for bit as if nothing had happened, with no step missing or doubled."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest
import torch
from running import data_of, final_weights, forked, metrics_of, preference_methods, run_process, torchrun

from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.clock import DEVICE_SECONDS, WALL_SECONDS

CONFIG = {
    "run": "train",
    "batch": 8,
    "epochs": 3,
    "lr": 2e-3,
    "max_steps": 24,
    "max_length": 96,
    "checkpoint_every": 5,
    "checkpoint_seconds": 0,
    "evaluate_every": 10,
}
# The first stands for those whose rows are one text, the second for those that compare two.
STANDING = [
    "sft",
    "dpo",
    "reward_model",
    "rwr",
    "decision_transformer",
    "kto",
    "preference_model",
    "process_reward_model",
]
METHODS = [*STANDING, *(name for name in preference_methods() if name not in STANDING)]


@pytest.fixture(scope="module")
def undisturbed(make_stage, base_model):
    """Events and weights of a method's run that nothing disturbs, computed once each."""
    known: dict[str, tuple[list, dict[str, torch.Tensor]]] = {}

    def run(method: str):
        if method not in known:
            stage = started(make_stage, base_model, method)
            known[method] = (forked(stage, 1, None, random.Random(0)), final_weights(stage))
        return known[method]

    return run


def started(make_stage, base_model, method: str, **config) -> Stage:
    data = data_of(method)
    return make_stage({**CONFIG, "method": method, **config}, model=base_model, data=data)


def times_of(events: list, name: str) -> list[float]:
    """One of a run's clocks by step, the last word on each."""
    values = {event.step: event.values[name] for event in events if event.type == "metrics"}
    return [values[step] for step in sorted(values)]


def killed_and_resumed(make_stage, base_model, undisturbed, method: str, seed: int) -> None:
    draw = random.Random(seed)
    stage = started(make_stage, base_model, method)
    emitted: list = []
    attempts = 1 + draw.randint(1, 3)
    for attempt in range(1, attempts):
        emitted += forked(stage, attempt, draw.randint(1, 20), draw)
    last = forked(stage, attempts, None, draw)
    events, weights = undisturbed(method)
    ours = final_weights(stage)
    assert all(torch.equal(tensor, ours[name]) for name, tensor in weights.items())
    # The last attempt alone has the whole story, and earlier ones agree with it.
    assert metrics_of(last) == metrics_of(events)
    steps = [event.step for event in last if event.type == "metrics"]
    assert steps == list(range(1, 25))
    for step, values in metrics_of(emitted).items():
        assert values == metrics_of(events)[step]
    # Its clocks continue from the checkpoint.
    for name in (DEVICE_SECONDS, WALL_SECONDS):
        assert times_of(last, name) == sorted(times_of(last, name))


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, len(METHODS)))]
)
def test_a_killed_run_resumes_bit_for_bit(make_stage, base_model, undisturbed, seed):
    killed_and_resumed(make_stage, base_model, undisturbed, METHODS[seed % len(METHODS)], seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(len(METHODS), len(METHODS) + 50))
def test_a_killed_run_resumes_bit_for_bit_fifty_times(make_stage, base_model, undisturbed, seed):
    killed_and_resumed(make_stage, base_model, undisturbed, METHODS[seed % len(METHODS)], seed)


# Steps of three epochs of 100 rows in batches of 8: an epoch is 13 steps.
THREE_EPOCHS = {"max_steps": 38}


@pytest.fixture(scope="module")
def with_dropout(make_stage, base_model, tmp_path_factory):
    """start() -> a stage that trains with dropout in its attention and its adapters."""
    model = tmp_path_factory.mktemp("dropout") / "model"
    shutil.copytree(base_model, model)
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "attention_dropout": 0.3}))

    def start() -> Stage:
        return started(make_stage, model, "sft", **THREE_EPOCHS, lora={"rank": 4, "dropout": 0.2})

    return start


# In the first epoch, the second and the third, after a checkpoint of each.
@pytest.mark.parametrize(
    "kill_after", [pytest.param(7, marks=pytest.mark.long), 16, pytest.param(32, marks=pytest.mark.long)]
)
def test_dropout_resumes_bit_for_bit_in_every_epoch(with_dropout, kill_after):
    """Random states are part of a checkpoint."""
    plain, stage, draw = with_dropout(), with_dropout(), random.Random(kill_after)
    events = forked(plain, 1, None, draw)
    forked(stage, 1, kill_after, draw)
    last = forked(stage, 2, None, draw)
    resumed = [event.message for event in last if event.type == "log" and "resumed from step" in event.message]
    assert [int(line.split()[3]) // 13 for line in resumed] == [kill_after // 13]
    assert metrics_of(last) == metrics_of(events)
    ours = final_weights(stage)
    assert all(torch.equal(tensor, ours[name]) for name, tensor in final_weights(plain).items())


def test_a_damaged_latest_checkpoint_costs_steps_and_nothing_else(make_stage, base_model, undisturbed):
    stage = started(make_stage, base_model, "sft")
    draw = random.Random(0)
    forked(stage, 1, 17, draw)
    latest = max(stage.checkpoints.glob("a1-step-*"))
    (latest / "tensors-00001.safetensors").write_bytes(b"damaged")
    events = forked(stage, 2, None, draw)
    logs = [event.message for event in events if event.type == "log"]
    assert any("is not used" in line for line in logs)
    assert any("resumed from step" in line for line in logs)
    weights = undisturbed("sft")[1]
    ours = final_weights(stage)
    assert all(torch.equal(tensor, ours[name]) for name, tensor in weights.items())


def test_checkpoints_by_time_and_their_events(make_stage, base_model):
    stage = started(make_stage, base_model, "sft", checkpoint_every=0, checkpoint_seconds=1e-6)
    events = forked(stage, 1, None, random.Random(0))
    saved = [event for event in events if event.type == "checkpoint"]
    assert [event.step for event in saved] == list(range(1, 24))
    assert saved[-1].path == "checkpoints/a1-step-00000023"
    assert len(list(stage.checkpoints.iterdir())) == 2


@pytest.mark.parametrize(
    ("changes", "resumes"),
    [({"micro_tokens": 512, "gradient_checkpointing": True}, True), ({"lr": 1e-3}, False)],
)
def test_only_a_run_that_gives_the_same_goes_on_from_a_checkpoint(
    make_stage, base_model, undisturbed, changes, resumes
):
    """How the work is cut up changes rounding at most; any other config starts over."""
    stage = started(make_stage, base_model, "sft")
    draw = random.Random(0)
    forked(stage, 1, 12, draw)
    config = stage.spec.config.model_copy(update=changes)
    changed = Stage(stage.directory, stage.spec.model_copy(update={"config": config}), stage._events)
    events = forked(changed, 2, None, draw)
    assert any("resumed from step" in event.message for event in events if event.type == "log") == resumes
    expected = metrics_of(undisturbed("sft")[0])
    same = {step: pytest.approx(values["loss"], rel=1e-4) for step, values in expected.items()}
    assert ({step: values["loss"] for step, values in metrics_of(events).items()} == same) == resumes


@pytest.mark.long
def test_two_processes_train_as_one(make_stage, base_model, tmp_path):
    """torchrun with gloo: the same global batches, so the same losses and weights up to rounding."""
    results = []
    for method in ("sft", "reward_model"):
        for command in (None, torchrun(2)):
            stage = started(make_stage, base_model, method, micro_batch=3)
            code, events, stderr = run_process(stage, command)
            assert code == 0, stderr[-2000:]
            results.append((metrics_of(events), final_weights(stage)))
            assert [e.type for e in events].count("succeeded") == 1
    for (one, weights), (two, others) in (results[:2], results[2:]):
        assert one.keys() == two.keys()
        for step, values in one.items():
            assert two[step]["loss"] == pytest.approx(values["loss"], rel=1e-5)
            assert two[step].keys() == values.keys()
        for name, tensor in weights.items():
            torch.testing.assert_close(others[name], tensor, rtol=1e-3, atol=1e-5)


def test_a_finished_runs_folder_has_no_partial_outputs(make_stage, base_model):
    stage = started(make_stage, base_model, "sft", max_steps=2)
    forked(stage, 1, None, random.Random(0))
    assert [p.name for p in Path(stage.directory / "outputs").iterdir()] == ["model"]
