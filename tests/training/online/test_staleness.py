"""Answers sampled one step ahead: of the weights that sampled, weighed for it, and the same after kill -9.

Only an engine in a process of its own gains time by it; these runs sample ahead by the model itself, which is exact.
"""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from running import final_weights, forked, metrics_of, ran

from steerboard_contracts.methods import needed_method
from steerboard_workers.alignment.online.ahead import Ahead
from steerboard_workers.alignment.rollouts import Rollout
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


VLLM = {"engine": "vllm", "sampler_weight_cap": 2}


@pytest.fixture
def stale(make_stage, base_model):
    """stale(**config) -> a Stage that samples ahead."""

    def start(staleness: int = 1, most: int | None = None, **config) -> Stage:
        stage = make_stage({**QUICK, **config}, model=base_model)
        # Not by the field, which is for vLLM alone.
        changes = {"staleness": staleness, "sampler_weight_cap": 2.0}
        changes |= {} if most is None else {"max_off_policy_steps": most}
        ahead = stage.spec.config.model_copy(update=changes)
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


def test_so_many_samplings_are_begun_ahead_and_no_answer_is_older(stale, monkeypatch):
    begun = []
    begin = ModuleSampler.begin

    def counted(self, answers, prompts, temperature):
        begun.append(temperature)
        begin(self, answers, prompts, temperature)

    monkeypatch.setattr(ModuleSampler, "begin", counted)
    metrics = ran(stale(staleness=3, max_steps=7, lr=5e-4))
    assert begun.count(1.0) == 7
    assert [values["off_policy_steps"] for values in metrics.values()] == [0, 1, 2, 3, 3, 3, 3]
    assert all(values["ratio_error"] <= 1e-5 for values in metrics.values())
    kls = [values["sampler_kl"] for values in metrics.values()]
    assert min(kls[1:]) > 100 * kls[0]
    one = ran(stale(max_steps=7, lr=5e-4))
    assert [values["off_policy_steps"] for values in one.values()] == [0, 1, 1, 1, 1, 1, 1]
    assert np.mean(kls[3:]) > np.mean([values["sampler_kl"] for step, values in one.items() if step > 3])


def test_what_is_left_of_a_sampling_is_dropped_once_it_is_too_old(stale):
    """Three minibatches a sampling, one sampling ahead: they are 3, 4 and 5 steps old, and the bound is 4."""
    metrics = ran(stale(most=4, minibatches=3, max_steps=10, lr=1e-4))
    ages = [values["off_policy_steps"] for values in metrics.values()]
    assert max(ages) == 4
    assert ages[:3] == [0, 1, 2]
    dropped = {step: values["dropped_old"] for step, values in metrics.items() if "dropped_old" in values}
    assert dropped[1] == 0
    assert set(dropped.values()) == {0, 8}
    free = ran(stale(minibatches=3, max_steps=10, lr=1e-4))
    assert max(values["off_policy_steps"] for values in free.values()) == 5


def test_a_checkpoint_from_before_several_samplings_ahead_still_has_its_own():
    ids = np.arange(3, dtype=np.int32)
    rollout = Rollout(0, 0, ids, np.zeros(3, np.float32), "a", True)
    ahead = Ahead()
    ahead.begin(SimpleNamespace(finish=lambda begun: begun), [[rollout]], 7, 4)
    (kept,) = ahead.state()
    assert kept["step"] == 4
    for state, step in (([kept], 4), (kept["groups"], None), (None, None)):
        restored = Ahead()
        restored.restore(state)
        taken = restored.take(7)
        assert (taken is None) == (state is None)
        if taken is not None:
            assert taken[1] == step
            assert taken[0][0][0].ids.tolist() == [0, 1, 2]
        assert restored.take(8) is None


def test_samplings_that_a_source_passes_over_are_forgotten():
    ahead, policy = Ahead(), SimpleNamespace(finish=lambda begun: begun)
    for number in (1, 2, 3):
        ahead.begin(policy, [[f"answer {number}"]], number, 0)
    assert ahead.take(2) == ([["answer 2"]], 0)
    assert len(ahead) == 1
    assert ahead.take(5) is None


def test_an_evaluation_between_changes_nothing(stale):
    quiet, watched = ran(stale()), ran(stale(evaluate_every=1))
    for step, values in quiet.items():
        assert {name: watched[step][name] for name in values if "seconds" not in name and "per_second" not in name} == {
            name: value for name, value in values.items() if "seconds" not in name and "per_second" not in name
        }


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "changes"),
    [
        *(("rloo", {}), ("online_dpo", {}), ("online_dpo", {"staleness": 3})),
        ("cispo", {"staleness": 2, "most": 7, "minibatches": 3}),
    ],
)
def test_a_killed_run_resumes_bit_for_bit_with_the_answers_that_it_had_sampled_ahead(stale, method, changes):
    config = {"method": method, "max_steps": 8, "checkpoint_every": 3, "lr": 1e-3, **changes}
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
        ({**VLLM, "staleness": 9}, "less than or equal to 8"),
        (
            {**VLLM, "staleness": 2, "minibatches": 3, "max_off_policy_steps": 5},
            "would drop every answer: with staleness 2 and 3 steps a sampling, answers are 6 steps old",
        ),
        ({"engine": "vllm", "lora": {"quantise": "nf4"}}, "leaves no whole weights to give to another process"),
        ({**VLLM, "vllm": {"quantisation": "fp8_per_tensor"}}, "would round weights once"),
        ({"engine": "vllm", "vllm": {"kv_cache": "fp8"}}, "samples from rounded probabilities: weigh or mask"),
    ],
)
def test_what_cannot_be_learned_from_is_refused_with_what_to_change(fields, words):
    with pytest.raises(ValidationError, match=words):
        needed_method("rloo").config(method="rloo", **fields)


def test_answers_by_a_rounded_cache_may_be_weighed_or_masked():
    rounded = {"method": "rloo", "engine": "vllm", "vllm": {"kv_cache": "fp8"}}
    for correction in ({"sampler_weight_cap": 2}, {"sampler_mean_high": 1.01}):
        assert needed_method("rloo").config(**rounded, **correction).corrects_sampler
