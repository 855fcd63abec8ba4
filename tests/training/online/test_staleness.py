"""Answers sampled one step ahead: of the weights that sampled, weighed for it, and the same after kill -9.

Only an engine in a process of its own gains time by it; these runs sample ahead by the model itself, which is exact.
"""

from __future__ import annotations

import random

import pytest
import torch
from pydantic import ValidationError
from running import final_weights, forked, metrics_of, ran

from steerboard_contracts.methods import needed_method
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.sampling.live_policy import ModuleSampler

QUICK = {
    "run": "train",
    "method": "rloo",
    "rules": [{"kind": "regex", "pattern": "s"}],
    "batch": 6,
    "max_length": 96,
    "checkpoint_every": 0,
    "checkpoint_seconds": 0,
    "lr": 2e-3,
    "max_steps": 5,
    "max_new_tokens": 8,
    "answers": 4,
    "evaluate_rows": 4,
}


@pytest.fixture
def stale(make_stage, base_model):
    """stale(**config) -> a Stage that samples ahead."""

    def start(staleness: int = 1, **config) -> Stage:
        stage = make_stage({**QUICK, **config}, model=base_model)
        # Not by the field, which is for vLLM alone.
        ahead = stage.spec.config.model_copy(update={"staleness": staleness, "sampler_weight_cap": 2.0})
        return Stage(stage.directory, stage.spec.model_copy(update={"config": ahead}), stage._events)

    return start


def test_answers_are_of_the_weights_one_step_ago_and_none_is_sampled_in_vain(stale, monkeypatch):
    begun = []
    begin = ModuleSampler.begin

    def counted(self, answers, prompts, temperature):
        begun.append(temperature)
        begin(self, answers, prompts, temperature)

    monkeypatch.setattr(ModuleSampler, "begin", counted)
    metrics = ran(stale())
    assert begun.count(1.0) == 5
    assert metrics[1]["sampler_difference_max"] < 1e-4
    for step in range(2, 6):
        assert metrics[step]["sampler_difference_max"] > 1e-3
        assert metrics[step]["sampler_weight"] != pytest.approx(1.0, abs=1e-6)
        # What is learned starts from the weights of now all the same.
        assert metrics[step]["ratio_error"] <= 1e-5
    fresh = ran(stale(staleness=0))
    assert fresh[1]["reward"] == metrics[1]["reward"]
    assert max(values["sampler_difference_max"] for values in fresh.values()) < 1e-4


def test_an_evaluation_between_changes_nothing(stale):
    quiet, watched = ran(stale()), ran(stale(evaluate_every=1))
    for step, values in quiet.items():
        assert {name: watched[step][name] for name in values if "seconds" not in name and "per_second" not in name} == {
            name: value for name, value in values.items() if "seconds" not in name and "per_second" not in name
        }


@pytest.mark.long
@pytest.mark.parametrize("method", ["rloo", "online_dpo"])
def test_a_killed_run_resumes_bit_for_bit_with_the_answers_that_it_had_sampled_ahead(stale, method):
    config = {"method": method, "max_steps": 8, "checkpoint_every": 3, "lr": 1e-3}
    whole, stage, draw = stale(**config), stale(**config), random.Random(3)
    metrics = metrics_of(forked(whole, 1, None, draw))
    forked(stage, 1, 5, draw)
    last = forked(stage, 2, None, draw)
    assert any(e.type == "log" and "resumed from step" in e.message for e in last)
    assert metrics_of(last) == metrics
    weights = final_weights(whole)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in final_weights(stage).items())


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"staleness": 1, "sampler_weight_cap": 2}, "staleness needs engine vllm or placement"),
        ({"staleness": 1, "engine": "vllm"}, "staleness needs sampler_weight_cap"),
        ({"staleness": 2, "engine": "vllm", "sampler_weight_cap": 2}, "less than or equal to 1"),
        ({"engine": "vllm", "lora": {"quantise": "nf4"}}, "leaves no whole weights to give to another process"),
    ],
)
def test_what_cannot_be_sampled_ahead_is_refused_with_what_to_change(fields, words):
    with pytest.raises(ValidationError, match=words):
        needed_method("rloo").config(method="rloo", **fields)
