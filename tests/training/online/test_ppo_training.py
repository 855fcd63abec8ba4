"""PPO as a run: rewards of its own answers rise, the critic starts as the reward model, and kill -9 changes nothing."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from running import forked, metrics_of, ran, run_forked, run_ranks, weights_of
from safetensors.torch import load_file
from torch.testing import assert_close

from steerboard_contracts.models import ModelInfo
from steerboard_contracts.stage.inputs import ModelInput

QUICK = {
    "run": "train",
    "method": "ppo",
    "batch": 32,
    "minibatches": 2,
    "updates": 2,
    "epochs": 20,
    "max_steps": 36,
    "lr": 1e-2,
    "critic_lr": 1e-2,
    "max_length": 96,
    "max_new_tokens": 6,
    "rules": [{"kind": "regex", "pattern": "s"}],
    "evaluate_rows": 4,
    "checkpoint_seconds": 0,
    "checkpoint_every": 5,
    "seed": 1,
}


@pytest.fixture(scope="module")
def undisturbed(make_stage, base_model):
    stage = make_stage(QUICK, model=base_model)
    return stage, ran(stage)


def scored(make_stage, base_model, reward_model, **config):
    stage = make_stage({**QUICK, "rules": [], **config}, model=base_model)
    given = ModelInput(name="reward", path=str(reward_model), content_hash="r")
    stage.spec = stage.spec.model_copy(update={"inputs": {**stage.spec.inputs, "reward": given}})
    return stage


def test_the_reward_of_its_own_answers_rises(undisturbed):
    _, metrics = undisturbed
    sampled = [values["reward"] for _, values in sorted(metrics.items()) if "reward" in values]
    assert len(sampled) == 36 / 4  # two minibatches, learned twice
    assert np.mean(sampled[-3:]) > np.mean(sampled[:3]) + 0.2, sampled


def test_the_first_minibatch_of_a_sampling_has_ratio_1_and_clips_nothing(undisturbed):
    _, metrics = undisturbed
    for step, values in metrics.items():
        assert ("ratio_error" in values) == (step % 4 == 1)
        if step % 4 == 1:
            assert values["ratio_error"] < 1e-5
            assert (values["clip_share"], values["update_kl"]) == (0, pytest.approx(0, abs=1e-9))
    assert any(values["clip_share"] > 0 for values in metrics.values())


def test_a_sampling_reports_what_there_is_to_watch(undisturbed):
    _, metrics = undisturbed
    assert {"reward", "kl", "length", "ended", "entropy", "explained_variance", "value", "value_tokens"} <= set(
        metrics[1]
    )
    assert metrics[1]["kl"] == pytest.approx(0, abs=1e-4)
    assert metrics[33]["kl"] > 0.1
    assert all("value_loss" in values for values in metrics.values())


def test_the_critic_starts_as_the_reward_model_and_may_learn_alone_at_first(make_stage, base_model, reward_model):
    """The policy keeps its weights as long as the critic is warmed up."""
    # AdamW's decay alone would move it.
    config = {"critic_warmup": 1, "weight_decay": 0.5}
    stage = scored(make_stage, base_model, reward_model, max_steps=4, updates=2, critic_lr=1e-5, **config)
    ran(stage)
    start, policy = load_file(base_model / "model.safetensors"), weights_of(stage)
    assert all(torch.equal(policy[name], tensor) for name, tensor in start.items())
    judge, critic = load_file(reward_model / "model.safetensors"), weights_of(stage, "critic")
    moved = {name: (critic[name] - tensor).abs().max() for name, tensor in judge.items()}
    assert 0 < max(moved.values()) < 1e-4
    info = ModelInfo.model_validate_json((stage.directory / "outputs" / "critic" / "steerboard.json").read_text())
    assert (info.role, info.lineage["parent"]) == ("critic", "r")
    learned = scored(make_stage, base_model, reward_model, max_steps=5, **config)
    ran(learned)
    assert any(not torch.equal(weights_of(learned)[name], tensor) for name, tensor in start.items())


def test_the_critic_begins_in_the_scale_of_the_rewards_that_are_learned(make_stage, base_model, reward_model):
    """A reward model that counts 3, with a rule that gives every answer 2: the critic knows both."""
    rule = {"kind": "regex", "pattern": "^", "weight": 2.0}
    plain, scaled = (
        ran(scored(make_stage, base_model, reward_model, max_steps=1, batch=8, **config))[1]
        for config in ({}, {"reward_weights": [-3.0], "rules": [rule]})
    )
    assert scaled["reward"] == pytest.approx(-3 * plain["reward"] + 2, abs=1e-4)
    assert scaled["value"] == pytest.approx(-3 * plain["value"] + 2, abs=1e-4)


@pytest.mark.long
def test_a_critic_in_another_scale_resumes_in_it(make_stage, base_model, reward_model):
    config = {"normalise_rewards": True, "reward_weights": [-3.0], "max_steps": 10, "batch": 8}
    plain, killed = (scored(make_stage, base_model, reward_model, **config) for _ in range(2))
    for stage in (plain, killed):
        (stage.directory / "stage.json").write_text(stage.spec.model_dump_json())
    draw = random.Random(1)
    events = forked(plain, 1, None, draw)
    forked(killed, 1, 7, draw)
    last = forked(killed, 2, None, draw)
    assert any("resumed from step" in event.message for event in last if event.type == "log")
    assert metrics_of(last) == metrics_of(events)
    ours = weights_of(killed, "critic")
    assert all(torch.equal(tensor, ours[name]) for name, tensor in weights_of(plain, "critic").items())


@pytest.mark.long
def test_a_killed_run_resumes_bit_for_bit_inside_of_a_sampling(make_stage, base_model):
    """Checkpoints in the middle of a sampling have the critic's weights and the values before the update."""
    config = {**QUICK, "max_steps": 24, "kl_stop": 0.05}
    plain, stage, draw = make_stage(config, model=base_model), make_stage(config, model=base_model), random.Random(7)
    events = forked(plain, 1, None, draw)
    forked(stage, 1, 8, draw)
    forked(stage, 2, 15, draw)
    last = forked(stage, 3, None, draw)
    assert any("resumed from step" in event.message for event in last if event.type == "log")
    assert metrics_of(last) == metrics_of(events)
    for output in ("model", "critic"):
        ours = weights_of(stage, output)
        assert all(torch.equal(tensor, ours[name]) for name, tensor in weights_of(plain, output).items())


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["ddp", "zero2"])
def test_two_processes_sample_and_train_both_as_one_does(make_stage, wide_model, strategy):
    results = []
    for run, config in ((run_forked, {}), (run_ranks, {"strategy": strategy, "micro_batch": 3})):
        stage = make_stage({**QUICK, "lr": 1e-3, "critic_lr": 1e-3, "max_steps": 6, **config}, model=wide_model)
        code, events, stderr = run(stage)
        assert code == 0, stderr[-3000:]
        results.append((metrics_of(events), weights_of(stage), weights_of(stage, "critic")))
    (one, *weights), (two, *others) = results
    for step, values in one.items():
        for name, value in values.items():
            if name not in ("ratio_error", "sampler_difference", "sampler_difference_max", "update_kl", "kl"):
                assert two[step][name] == pytest.approx(value, rel=1e-3, abs=1e-4), (step, name)
    for mine, theirs in zip(weights, others, strict=True):
        for name, tensor in mine.items():
            assert_close(theirs[name], tensor, rtol=1e-3, atol=2e-4)


@pytest.mark.long
def test_a_policy_gets_more_reward_from_the_reward_model_that_its_critic_started_as(make_stage, base_model):
    """Which therefore knows much of the returns before it has learned anything."""
    config = {"run": "train", "method": "reward_model", "batch": 16, "epochs": 4, "lr": 3e-3, "max_length": 96}
    judge = make_stage(config, model=base_model, data="preferences")
    ran(judge)
    changes = {"critic_lr": 1e-3, "kl_weight": 0.02, "max_steps": 64, "max_new_tokens": 12}
    metrics = ran(scored(make_stage, base_model, judge.directory / "outputs" / "model", **changes))
    sampled = [values["reward"] for _, values in sorted(metrics.items()) if "reward" in values]
    assert np.mean(sampled[-3:]) > np.mean(sampled[:3]) + 0.5, sampled
    assert metrics[1]["explained_variance"] > 0.2
