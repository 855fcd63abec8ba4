"""`keep: best`: the weights of the evaluation with the lowest held-out loss, in whatever way the run got to its end."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest
import torch
from accelerate.state import AcceleratorState
from pydantic import ValidationError
from running import forked, metrics_of, recorded, run_ranks
from safetensors.torch import load_file

from steerboard_contracts.errors import BadInput
from steerboard_contracts.run_config import RUN_CONFIG
from steerboard_contracts.watching.kept import kept_best
from steerboard_workers.stages import train
from steerboard_workers.stages.runtime import Stage

# Its rate is constant: a run of fewer steps is the beginning of a longer one.
CONFIG = {
    "run": "train",
    "method": "sft",
    "lr": 3e-3,
    "warmup_ratio": 0,
    "min_lr_ratio": 1,
    "batch": 8,
    "epochs": 40,
    "max_steps": 24,
    "evaluate_every": 2,
    "checkpoint_every": 5,
    "checkpoint_seconds": 0,
    "keep": "best",
}


@pytest.fixture(scope="module")
def started(make_stage, base_model, wide_model, learned_by_heart):
    def start(data: Path = learned_by_heart, *, wide: bool = False, **config) -> Stage:
        return make_stage({**CONFIG, **config}, model=wide_model if wide else base_model, data=str(data))

    return start


def trained(stage: Stage):
    AcceleratorState._reset_state(reset_partial_state=True)
    return train.run(stage)


def weights_of(stage: Stage) -> dict[str, torch.Tensor]:
    folder = stage.directory / "outputs" / "model"
    return {name: t for path in sorted(folder.glob("*.safetensors")) for name, t in load_file(path).items()}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(tensor, other[name]) for name, tensor in one.items())


def losses_of(events: list) -> dict[int, float]:
    return {step: line["eval_loss"] for step, line in metrics_of(events).items() if "eval_loss" in line}


def best_of(events: list) -> int:
    losses = losses_of(events)
    step = min(losses, key=losses.get)
    assert step < max(losses), losses
    return step


@pytest.mark.parametrize(
    "config",
    [{}, {"lora": {"rank": 4, "merge": False}}, {"lora": {"rank": 4}}, {"method": "decision_transformer"}],
    ids=["full", "adapter", "merged", "scores"],
)
def test_the_best_weights_are_those_of_a_run_that_ends_there(started, config):
    stage = started(**config)
    done = trained(stage)
    events = stage._events.events
    step, losses = best_of(events), losses_of(events)
    shorter = started(**config, keep="last", max_steps=step)
    ended = trained(shorter)
    assert same(weights_of(stage), weights_of(shorter))
    last = started(**config, keep="last")
    trained(last)
    assert not same(weights_of(stage), weights_of(last))
    words = (
        f"best of 12 evaluations: step {step} of 24, held-out loss {losses[step]:.4g}; the last was {losses[24]:.4g}"
    )
    assert (done.summary["kept_step"], done.summary["kept"]) == (step, words)
    about = json.loads((stage.directory / "outputs" / "model" / "steerboard.json").read_text())
    assert about["summary"]["kept"] == words
    # What the summary reports of the held-out rows is of the saved weights; the curves are of the whole training.
    figures = {name: value for name, value in done.summary.items() if name.startswith("eval_")}
    assert figures == {name: value for name, value in ended.summary.items() if name.startswith("eval_")}
    assert done.summary["steps"] == max(losses) == 24
    assert "kept" not in ended.summary


def test_a_run_that_gets_better_to_its_end_keeps_its_end(started):
    stage, last = started(max_steps=2, evaluate_every=1), started(max_steps=2, evaluate_every=1, keep="last")
    done = trained(stage)
    losses = losses_of(stage._events.events)
    assert losses[2] < losses[1]
    trained(last)
    assert same(weights_of(stage), weights_of(last))
    assert done.summary["kept"].endswith("step 2 of 2, held-out loss " + f"{losses[2]:.4g}; the last was the best")


def test_the_rule_that_stops_a_run_leaves_its_best_weights(started):
    stage = started(health=[{"kind": "held_out_loss", "rises": 2, "action": "stop", "succeed": True}])
    done = trained(stage)
    step = best_of(stage._events.events)
    assert (done.summary["stopped_by"], done.summary["kept_step"]) == ("held_out_loss", step)
    assert done.summary["steps"] == step + 4
    shorter = started(keep="last", max_steps=step)
    trained(shorter)
    assert same(weights_of(stage), weights_of(shorter))


# Before there is a checkpoint, before the best evaluation, and when a checkpoint holds the best weights.
@pytest.mark.parametrize("kill_after", [4, 9, 22])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_killed_run_keeps_the_same_weights(started, kill_after, elsewhere):
    whole, stage, draw = started(), started(), random.Random(kill_after)
    events = forked(whole, 1, None, draw)
    forked(stage, 1, kill_after, draw)
    if elsewhere:  # a machine that has but what the store has
        for folder in stage.checkpoints.iterdir():
            if "step" not in folder.name:
                shutil.rmtree(folder)
    last = forked(stage, 2, None, draw)
    assert ("resumed from step" in str(last)) == (kill_after > 5)
    assert losses_of(last) == losses_of(events)
    assert last[-1].summary["kept"] == events[-1].summary["kept"]
    assert same(weights_of(stage), weights_of(whole))
    assert best_of(events) in range(10, 20)


def test_of_all_evaluations_only_the_best_one_stays_on_the_disk(started):
    stage = started()
    trained(stage)
    (folder,) = stage.checkpoints.glob("*-best-*")
    assert folder.name == f"a1-best-{best_of(stage._events.events):08d}"


@pytest.mark.parametrize("strategy", ["ddp", pytest.param("zero3", marks=pytest.mark.long)])
def test_two_processes_keep_the_best_weights_and_so_do_those_that_go_on(started, strategy):
    config = {"wide": True, "strategy": strategy, "lr": 1e-3}
    stage = started(**config)
    code, events, stderr = run_ranks(stage)
    assert code == 0, stderr[-3000:]
    step = best_of(events)
    shorter = started(**config, keep="last", max_steps=step)
    code, _, stderr = run_ranks(shorter)
    assert code == 0, stderr[-3000:]
    kept = weights_of(stage)
    assert same(kept, weights_of(shorter))
    for folder in stage.checkpoints.glob("*-best-*"):
        shutil.rmtree(folder)
    shutil.rmtree(stage.directory / "outputs")
    code, again, stderr = run_ranks(stage)
    assert code == 0, stderr[-3000:]
    assert "resumed from step 20" in str(again)
    assert again[-1].summary["kept_step"] == step
    assert same(weights_of(stage), kept)


def test_without_held_out_losses_to_choose_from_the_best_weights_are_refused_before_the_first_step(
    started, learned_by_heart, tmp_path
):
    rows = [json.loads(line) for line in learned_by_heart.read_text().splitlines()]
    learned = tmp_path / "rows.jsonl"
    learned.write_text("".join(json.dumps({**row, "split": "train"}) + "\n" for row in rows))
    for stage, why in (
        (started(data=learned), "no row of the data is held out"),
        (started(max_steps=2), "evaluated only at its end, after step 2"),
        (started(max_steps=4, evaluate_every=None, batch=1), "evaluated only at its end, after step 4"),
    ):
        with pytest.raises(BadInput, match=why) as refused:
            trained(stage)
        assert refused.value.code == "nothing_to_choose"
        assert not recorded(stage, "metrics")


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"method": "sft", "evaluate_every": 0}, "evaluate_every 0 makes one at the end only"),
        ({"method": "rloo", "rules": [{"kind": "regex", "pattern": "s"}], "answers": 2}, "learns from its own answers"),
    ],
)
def test_a_config_that_has_no_best_weights_is_refused(config, why):
    with pytest.raises(ValidationError, match=why):
        RUN_CONFIG.validate_python({"run": "train", "keep": "best", **config})


@pytest.mark.parametrize(
    ("losses", "step"),
    [
        ([(1, 2.0), (2, 1.0), (3, 1.0)], 2),
        ([(1, float("nan")), (2, 3.0), (3, float("inf"))], 2),
        ([(1, float("nan"))], None),
        ([], None),
    ],
)
def test_the_first_of_the_lowest_finite_losses_is_the_best(losses, step):
    best = kept_best(losses)
    assert (best and best.step) == step
