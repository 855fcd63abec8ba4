"""Policy gradients without a critic: what is rewarded becomes likelier, by rules and by reward models, and kill -9, the
split into passes and the minibatches of a sampling change nothing that they should not."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from running import changed_weights, final_weights, forked, metrics_of, ran, run_forked, run_ranks, weights_of

from steerboard_contracts.errors import BadInput
from steerboard_contracts.methods import needed_method
from steerboard_contracts.stage.inputs import ModelInput
from steerboard_contracts.stage.spec import STAGE_FILE
from steerboard_workers.alignment.batches.batching import Batcher
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.methods import training_of
from steerboard_workers.alignment.online.method import PolicyGradientMethod
from steerboard_workers.alignment.online.mismatch import SamplerDiffers
from steerboard_workers.alignment.online.scoring import UnscoredAnswers
from steerboard_workers.alignment.online.source import PolicyGradientSource
from steerboard_workers.alignment.rollouts import SourceContext
from steerboard_workers.phases import Phases
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.sampling.live_policy import SampledPolicy

QUICK = {
    "run": "train",
    "batch": 8,
    "epochs": 6,
    "max_length": 96,
    "checkpoint_seconds": 0,
    "checkpoint_every": 0,
    "lr": 1e-2,
    "max_steps": 12,
    "max_new_tokens": 8,
    "answers": 4,
    "evaluate_rows": 4,
    "temperature": 0.9,
}
RULE = {"kind": "regex", "pattern": "s"}
METHODS = ("rloo", "grpo", "reinforce_pp")
# Methods that differ in their loss, which several minibatches of a sampling need to show.
LOSSES = ("gspo", "cispo", "dapo", "sapo")


@pytest.fixture(scope="module")
def started(make_stage, base_model):
    """started(method, frozen={"reward": PATH}, **config) -> a stage that learns from the letter s, unless told else."""

    def start(method: str = "rloo", frozen: dict[str, Path] | None = None, **config) -> Stage:
        stage = make_stage({**QUICK, "method": method, "rules": [RULE], **config}, model=base_model)
        given = {name: ModelInput(name=name, path=str(path), content_hash="f") for name, path in (frozen or {}).items()}
        spec = stage.spec.model_copy(update={"inputs": {**stage.spec.inputs, **given}})
        (stage.directory / STAGE_FILE).write_text(spec.model_dump_json())
        return Stage(stage.directory, spec, stage._events)

    return start


def test_its_phases_are_those_of_online_training(started):
    stage = started(max_steps=2, kl_weight=0.05, evaluate_every=1)
    ran(stage)
    phases = stage.phases.so_far()
    assert set(phases) == {"load", "generate", "score", "reference", "update", "evaluate", "checkpoint"}
    steps = [event.values for event in stage._events.events if event.type == "metrics"]
    for phase in ("generate", "score", "reference", "update"):
        # What an evaluation samples and scores is of the evaluation.
        assert phases[phase].tokens == sum(values[f"{phase}_tokens"] for values in steps)
        assert phases[phase].seconds == pytest.approx(sum(values[f"{phase}_seconds"] for values in steps))
    assert phases["evaluate"].tokens > 0


@pytest.mark.parametrize("method", ["rloo", pytest.param("grpo", marks=pytest.mark.long), "reinforce_pp"])
def test_the_reward_of_what_is_sampled_rises(started, method):
    metrics = ran(started(method))
    rewards = [values["reward"] for values in metrics.values()]
    assert np.mean(rewards[-4:]) > np.mean(rewards[:4]) + 0.15, rewards
    for values in metrics.values():
        assert values["ratio_error"] <= 1e-5
        assert values["sampler_difference_max"] <= 1e-4
        assert values["reward_regex"] == values["reward"]
        assert values["reference_tokens"] >= values["score_tokens"] > values["generate_tokens"]
    assert metrics[1]["kl"] == pytest.approx(0, abs=1e-5)
    assert metrics[12]["kl"] > 0.1
    assert metrics[12]["eval_reward"] > rewards[0]


@pytest.mark.long
@pytest.mark.parametrize("method", LOSSES)
def test_the_reward_of_what_is_sampled_rises_by_every_policy_loss(started, method):
    """A sampling that is learned in two steps is included; the second has other ratios than 1."""
    bounds = {"clip_low": 0.2, "clip_high": 0.2} if method == "gspo" else {}
    metrics = ran(started(method, minibatches=2, max_steps=24, epochs=12, lr=5e-3, **bounds))
    rewards = [values["reward"] for values in metrics.values() if "reward" in values]
    assert len(rewards) == 12
    assert np.mean(rewards[-4:]) > np.mean(rewards[:4]) + 0.15, rewards
    assert max(values["update_kl"] for values in metrics.values()) > 1e-4


def test_a_killed_run_resumes_bit_for_bit_within_the_minibatches_of_a_sampling(started):
    config = {"minibatches": 2, "updates": 2, "max_steps": 10, "checkpoint_every": 3, "lr": 1e-3, "kl_stop": 0.5}
    whole, stage, draw = started(**config), started(**config), random.Random(5)
    metrics = metrics_of(forked(whole, 1, None, draw))
    forked(stage, 1, 7, draw)
    last = forked(stage, 2, None, draw)
    assert any(e.type == "log" and "resumed from step" in e.message for e in last)
    assert metrics_of(last) == metrics
    weights = final_weights(whole)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in final_weights(stage).items())
    # Four steps of each sampling, of which only the first has ratios of 1.
    assert [step for step, values in metrics.items() if "reward" in values] == [1, 5, 9]
    assert [step for step, values in metrics.items() if "ratio_error" in values] == [1, 5, 9]
    assert all((values["update_kl"] > 1e-7) == (step not in (1, 5, 9)) for step, values in metrics.items())


@pytest.mark.parametrize("method", [pytest.param(name, marks=pytest.mark.long) for name in LOSSES])
def test_a_killed_run_resumes_bit_for_bit_by_every_policy_loss(started, method):
    config = {"minibatches": 3, "max_steps": 7, "checkpoint_every": 2, "lr": 1e-3, "batch": 4}
    whole, stage, draw = started(method, **config), started(method, **config), random.Random(7)
    metrics = metrics_of(forked(whole, 1, None, draw))
    forked(stage, 1, 5, draw)
    last = forked(stage, 2, None, draw)
    assert any(e.type == "log" and "resumed from step" in e.message for e in last)
    assert metrics_of(last) == metrics
    weights = final_weights(whole)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in final_weights(stage).items())
    assert max(values["update_kl"] for values in metrics.values()) > 1e-7


def test_how_a_step_is_cut_into_passes_changes_its_loss_by_rounding_only(started):
    """KL in the loss and means of sequences are included, where a wrong count would show."""
    results = []
    for cut in ({}, {"micro_batch": 1, "batching": "padded"}):
        stage = started("grpo", max_steps=3, lr=1e-3, **cut)
        results.append((ran(stage), weights_of(stage)))
    (one, weights), (two, others) = results
    for step, values in one.items():
        assert two[step]["loss"] == pytest.approx(values["loss"], rel=1e-4, abs=1e-6)
        assert two[step]["grad_norm"] == pytest.approx(values["grad_norm"], rel=1e-4)
        assert two[step]["ratio_error"] <= 1e-5
    for name, tensor in weights.items():
        torch.testing.assert_close(others[name], tensor, rtol=1e-3, atol=5e-5)


@pytest.mark.parametrize(
    ("method", "config"), [("grpo", {"kl_in": "loss"}), ("ppo", {"critic_lr": 1e-3, "minibatches": 1})]
)
def test_answers_share_their_prompt_in_all_passes_which_changes_rounding_only(started, monkeypatch, method, config):
    """Fewer positions for the policy, its reference and its critic, and the same losses, gradients and weights."""
    collate, positions, results = Batcher.collate, [0, 0], []

    def counted(self, examples):
        batch = collate(self, examples)
        positions[len(results)] += batch.input_ids.numel()
        return batch

    monkeypatch.setattr(Batcher, "collate", counted)
    for shares in (True, False):
        monkeypatch.setattr(PolicyGradientMethod, "shares_prompt", shares)
        stage = started(method, max_steps=3, lr=1e-3, entropy_weight=0.01, batching="padding_free", **config)
        results.append((ran(stage), weights_of(stage)))
    (one, weights), (two, others) = results
    assert positions[0] < 0.9 * positions[1]
    for step, values in one.items():
        for name in ("loss", "grad_norm", "kl", "reward", "entropy", *(["value_loss"] if method == "ppo" else [])):
            assert two[step][name] == pytest.approx(values[name], rel=1e-4, abs=1e-6), (step, name)
        assert max(values["ratio_error"], two[step]["ratio_error"]) <= 1e-5
        assert values["tokens"] == two[step]["tokens"]
    for name, tensor in weights.items():
        torch.testing.assert_close(others[name], tensor, rtol=1e-3, atol=5e-5)


@pytest.mark.parametrize("kl_weight", [0.04, 0.0])
def test_the_only_update_of_a_sampling_is_what_reads_the_policy(started, monkeypatch, kl_weight):
    """The first sampling is an exception, whose answers are read before as well. A run finds and learns the same either
    way."""
    results = []
    for once in (True, False):
        if not once:
            monkeypatch.setattr(PolicyGradientSource, "_updates_once", False)
        stage = started("grpo", max_steps=4, lr=1e-3, kl_weight=kl_weight, micro_batch=5)
        results.append((ran(stage), weights_of(stage)))
    (one, weights), (two, others) = results
    for step, values in one.items():
        reads = (step == 1) + (kl_weight > 0)
        assert values.get("reference_tokens", 0) == reads * values["score_tokens"]
        assert {name for name in set(values) ^ set(two[step]) if not name.startswith("reference_")} == set()
        for name in ("loss", "grad_norm", "entropy", *(["kl"] if kl_weight else [])):
            assert values[name] == pytest.approx(two[step][name], rel=1e-4, abs=1e-6), (step, name)
        for name in ("sampler_difference", "sampler_difference_max"):
            assert values[name] == pytest.approx(two[step][name], abs=1e-5), (step, name)
    for name, tensor in weights.items():
        torch.testing.assert_close(others[name], tensor, rtol=1e-3, atol=5e-5)


def test_a_sampler_that_is_another_policy_fails_the_update_that_finds_it(started):
    """The update of the second sampling fails: the first is read before it is learned."""
    stage = started("grpo", max_steps=3)
    draw = SampledPolicy._rollout

    def shifted(self, prompts, answer):
        place, rollout = draw(self, prompts, answer)
        return place, replace(rollout, log_probs=rollout.log_probs - (0.5 if metrics else 0.0))

    metrics: list[int] = []
    measured = stage.metrics

    def noted(step, values):
        metrics.append(step)
        measured(step, values)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SampledPolicy, "_rollout", shifted)
        patched.setattr(stage, "metrics", noted)
        with pytest.raises(SamplerDiffers, match=r"0\.5 nats from the trained model's on average"):
            ran(stage)
    assert metrics == [1]


def test_what_is_rehearsed_has_the_answers_of_a_prompt_behind_it(started):
    method = training_of(started("grpo", batch=5).spec.config)
    prompts = [Example(row, np.arange(row + 2, dtype=np.int32), ()) for row in range(6)]
    renderer = SimpleNamespace(max_length=32)
    source = method.source(SourceContext(prompts, [], renderer, None, Phases(), SimpleNamespace()))
    (rehearsed,) = source.rehearsal()
    assert [example.row for example in rehearsed] == [5] * 4 + [4] * 4
    assert {len(example.responses[0]) for example in rehearsed} == {8}


def test_a_policy_that_moved_too_far_samples_again(started):
    config = {"minibatches": 2, "updates": 4, "max_steps": 6, "lr": 3e-2, "batch": 4}
    metrics = ran(started(kl_stop=1e-3, **config))
    sampled = [step for step, values in metrics.items() if "reward" in values]
    assert len(sampled) > 1
    assert metrics[sampled[1]]["kl_stopped"] == 1


@pytest.fixture(scope="module")
def reward_model(make_stage, base_model) -> Path:
    """Longer answers have more reward."""
    config = {"run": "train", "method": "reward_model", "batch": 8, "max_steps": 2, "lr": 1e-3, "max_length": 96}
    stage = make_stage({**config, "checkpoint_seconds": 0}, model=base_model, data="preferences")
    ran(stage)
    return stage.directory / "outputs" / "model"


def test_reward_models_and_rules_add_up_by_their_weights(started, reward_model, base_model, tmp_path):
    frozen = {"reward": reward_model, "reward_2": changed_weights(reward_model, tmp_path / "other", 0.05)}
    config = {"reward_weights": [2.0, -0.5], "rules": [{**RULE, "weight": 3.0}], "max_steps": 2, "kl_weight": 0}
    metrics = ran(started("grpo", frozen, **config))
    for values in metrics.values():
        parts = 2 * values["reward_model"] - 0.5 * values["reward_model_2"] + 3 * values["reward_regex"]
        assert values["reward"] == pytest.approx(parts, rel=1e-5)
        assert "kl" not in values  # no reference was read


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["ddp", "zero2"])
@pytest.mark.parametrize("method", METHODS)
def test_two_processes_learn_as_one(started, reward_model, method, strategy):
    results = []
    for run, config in ((run_forked, {}), (run_ranks, {"strategy": strategy})):
        stage = started(method, {"reward": reward_model}, max_steps=4, lr=1e-3, micro_batch=3, **config)
        code, events, stderr = run(stage)
        assert code == 0, stderr[-3000:]
        results.append((metrics_of(events), final_weights(stage)))
    (one, weights), (two, others) = results
    for step, values in one.items():
        assert two[step]["reward"] == pytest.approx(values["reward"], rel=1e-5)
        assert two[step]["loss"] == pytest.approx(values["loss"], rel=1e-4, abs=1e-6)
        assert two[step]["ratio_error"] <= 1e-5
    for name, tensor in weights.items():
        torch.testing.assert_close(others[name], tensor, rtol=1e-3, atol=5e-5)


# -- what fails -------------------------------------------------------------------------------------------------------


def test_answers_without_a_reward_fail_the_run_and_are_shown(started):
    """Labelled rows have no reference answer."""
    with pytest.raises(UnscoredAnswers, match=r"32 of 32 answers have no reward, the first one of row \d+ by exact"):
        ran(started(rules=[{"kind": "exact_match"}]))


def test_a_run_without_any_reward_fails_before_it_samples(started):
    with pytest.raises(BadInput, match="nothing gives the answers a reward") as refused:
        ran(started(rules=[]))
    assert refused.value.code == "no_reward"


def test_dropout_of_the_models_own_config_is_off(started, base_model, tmp_path):
    """It would give the answers other log-probs than a moment ago."""
    stage = started(max_steps=1)
    folder = changed_weights(base_model, tmp_path / "model", 0.0)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"attention_dropout": 0.9}))
    inputs = {**stage.spec.inputs, "model": stage.spec.inputs["model"].model_copy(update={"path": str(folder)})}
    dropping = Stage(stage.directory, stage.spec.model_copy(update={"inputs": inputs}), stage._events)
    assert ran(dropping)[1]["ratio_error"] <= 1e-5
    saved = json.loads((stage.directory / "outputs" / "model" / "config.json").read_text())
    assert saved["attention_dropout"] == 0.9


@pytest.mark.parametrize(
    ("method", "changes", "message"),
    [
        ("rloo", {"answers": 1}, "greater than or equal to 2"),
        ("grpo", {"answers": 1}, "greater than or equal to 2"),
        ("reinforce_pp", {"baseline": True, "answers": 1}, "needs answers of 2 or more"),
        ("reinforce_pp", {"drop_equal": True, "answers": 1}, "needs answers of 2 or more"),
        ("rloo", {"kl_in": "loss", "kl_estimator": "k1"}, "k1 in the loss has no effect"),
        ("rloo", {"kl_estimator": "k3"}, "k3 belongs in the loss"),
        ("rloo", {"dual_clip": 1.0}, "greater than 1"),
        ("rloo", {"lora": {"dropout": 0.1}}, "lora.dropout must be 0"),
        ("rloo", {"rules": [{"kind": "regex", "pattern": "(a"}]}, "is not a valid regular expression"),
        ("rloo", {"rules": [{"kind": "regex", "pattern": "a" * 501}]}, "at most 500 characters"),
    ],
)
def test_what_cannot_work_is_refused_at_the_border(method, changes, message):
    with pytest.raises(ValidationError, match=message):
        needed_method(method).config.model_validate({**QUICK, "method": method, **changes})
