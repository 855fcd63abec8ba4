"""Held-out loss that is seen to rise: how often it is evaluated, what a rule does about it, and a run that overfits."""

from __future__ import annotations

import pytest
from accelerate.state import AcceleratorState
from running import metrics_of, recorded

from steerboard_contracts.run_config import RUN_CONFIG
from steerboard_contracts.watching.warnings import overfitted
from steerboard_workers.stages import train
from steerboard_workers.stages.training.evaluation import evaluations_every


def config_of(method="sft", **fields):
    return RUN_CONFIG.validate_python({"run": "train", "method": method, **fields})


@pytest.mark.parametrize(
    ("fields", "total", "examples", "every"),
    [
        ({"batch": 128}, 1000, 512, 100),  # ten times
        ({"batch": 8}, 1000, 512, 250),  # a tenth of the time: 4 times 512 rows at a third each
        ({"batch": 8}, 10, 512, 0),
        ({"batch": 16}, 75, 450, 38),  # a short run: twice, for less than 30% of its time
        ({"batch": 16}, 75, 200, 25),  # and three times where that is so
        ({"batch": 128}, 5, 10, 1),
        ({"batch": 128}, 1000, 0, 0),
        ({"batch": 128, "evaluate_every": 7}, 1000, 512, 7),
        ({"batch": 128, "evaluate_every": 0}, 1000, 512, 0),
        ({"method": "rloo", "rules": [{"kind": "regex", "pattern": "s"}], "answers": 2}, 1000, 512, 0),
    ],
)
def test_a_run_is_evaluated_ten_times_by_default_where_that_costs_little(fields, total, examples, every):
    assert evaluations_every(config_of(**fields), total, examples) == every


@pytest.mark.parametrize(
    ("losses", "overfits"),
    [
        ([(10, 2.0), (20, 2.5), (30, 3.0)], True),
        ([(10, 2.0), (20, 1.9), (30, 3.0)], False),  # from the best one on it is a third of the steps
        ([(10, 2.0), (20, 1.99), (30, 2.01)], False),
        ([(10, 2.0), (20, 2.5), (30, 2.01)], False),  # noise
        ([(30, 2.0)], False),
        ([], False),
    ],
)
def test_a_held_out_loss_that_rises_for_most_of_the_steps_is_overfitting(losses, overfits):
    assert (overfitted(losses) is not None) == overfits


OVERFITS = {
    "run": "train",
    "method": "sft",
    "lr": 3e-3,
    "batch": 8,
    "epochs": 40,
    "max_steps": 60,
    "evaluate_every": 5,
    "checkpoint_every": 0,
}


@pytest.fixture
def overfitting(make_stage, base_model, learned_by_heart):
    AcceleratorState._reset_state(reset_partial_state=True)
    return lambda **fields: make_stage({**OVERFITS, **fields}, model=base_model, data=str(learned_by_heart))


def test_a_run_that_overfits_ends_with_a_serious_warning(overfitting):
    stage = overfitting()
    train.run(stage)
    *_, last = recorded(stage, "prepared")
    losses = {
        step: values["eval_loss"]
        for step, values in metrics_of(recorded(stage, "metrics")).items()
        if "eval_loss" in values
    }
    assert min(losses, key=losses.get) < 30, losses
    (warning,) = last.warnings
    assert (warning.code, warning.level) == ("overfitted", "serious")
    assert f"lowest at step {min(losses, key=losses.get)}" in warning.message
    assert "Start again with keep: best" in warning.message
    assert last.summary == recorded(stage, "prepared")[0].summary


def test_a_run_that_kept_its_best_weights_is_told_so_and_of_no_more(overfitting):
    stage = overfitting(keep="best")
    done = train.run(stage)
    (warning,) = recorded(stage, "prepared")[-1].warnings
    assert (warning.code, warning.level) == ("overfitted", "warning")
    assert f"the weights of step {done.summary['kept_step']} were kept" in warning.message


def test_a_rule_ends_a_run_whose_held_out_loss_rises(overfitting):
    stage = overfitting(health=[{"kind": "held_out_loss", "rises": 2, "action": "stop", "succeed": True}])
    done = train.run(stage)
    assert done.summary["stopped_by"] == "held_out_loss"
    assert done.summary["steps"] < 60
