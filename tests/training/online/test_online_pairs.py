"""Online DPO as a run, and its loss on pairs of one-token answers whose best policy is known."""

from __future__ import annotations

import json
import random
import shutil

import numpy as np
import pytest
import torch
from running import final_weights, forked, metrics_of, ran, recorded
from safetensors.torch import load_file
from transformers import AutoModelForSequenceClassification

from steerboard_contracts.methods import needed_method
from steerboard_contracts.stage.inputs import ModelInput
from steerboard_workers.alignment.batches.batch_source import BadSource
from steerboard_workers.alignment.methods import training_of
from steerboard_workers.alignment.online.mismatch import SamplerDiffers
from steerboard_workers.alignment.online.scoring import UnscoredAnswers
from steerboard_workers.stages.models.model_io import load_reward_model
from steerboard_workers.stages.training.sampling.live_policy import ModuleSampler
from steerboard_workers.stages.training.steps import FewerSteps

QUICK = {
    "run": "train",
    "method": "online_dpo",
    "batch": 8,
    "answers": 4,
    "epochs": 9,
    "max_steps": 12,
    "lr": 1e-2,
    "max_length": 96,
    "max_new_tokens": 8,
    "rules": [{"kind": "regex", "pattern": "s"}],
    "evaluate_rows": 4,
    "checkpoint_seconds": 0,
    "checkpoint_every": 5,
}


@pytest.fixture(scope="module")
def whole(make_stage, base_model):
    stage = make_stage(QUICK, model=base_model)
    return metrics_of(forked(stage, 1, None, random.Random(0))), final_weights(stage)


def test_the_reward_of_what_is_sampled_rises(whole):
    metrics, _ = whole
    rewards = [metrics[step]["reward"] for step in range(1, 13)]
    assert np.mean(rewards[-4:]) > np.mean(rewards[:4]) + 0.15, rewards
    assert metrics[1]["loss"] == pytest.approx(np.log(2), abs=1e-5)
    assert metrics[12]["eval_reward"] > rewards[0]


def test_ties_are_left_out_counted_and_made_up_for(whole):
    """The rule gives 0 or 1, so many prompts have answers that are all alike."""
    metrics, _ = whole
    for values in metrics.values():
        assert values["dropped_tied"] == values["dropped_single"] == 0
        assert values["pairs"] + values["dropped_equal_texts"] + values["missing_groups"] == 8
        assert values["reward_gap"] == 1
    assert any(values["refills"] > 0 for values in metrics.values())


@pytest.mark.long
def test_a_killed_run_resumes_bit_for_bit(make_stage, base_model, whole):
    """The place in the prompts, which refills move on, is resumed, too."""
    stage, draw = make_stage(QUICK, model=base_model), random.Random(3)
    forked(stage, 1, 7, draw)
    last = forked(stage, 2, None, draw)
    assert any(event.type == "log" and "resumed from step" in event.message for event in last)
    metrics, weights = whole
    assert metrics_of(last) == metrics
    assert all(torch.equal(tensor, weights[name]) for name, tensor in final_weights(stage).items())


GRPO = {"method": "grpo", "drop_equal": True, "minibatches": 1}


@pytest.mark.parametrize("changes", [{}, pytest.param(GRPO, marks=pytest.mark.long)], ids=["online_dpo", "grpo"])
def test_a_step_of_ties_is_skipped_and_counted_whatever_kills_the_run(make_stage, base_model, changes):
    """One prompt a step, so that now and then its answers tie; what AdamW remembers is of the other steps only."""
    config = {**QUICK, "batch": 1, "answers": 2, "refill": 0, "max_steps": 10, "checkpoint_every": 1, "seed": 3}
    config |= {"max_skipped": 1.0, **changes}
    plain, killed, draw = make_stage(config, model=base_model), make_stage(config, model=base_model), random.Random(2)
    metrics = metrics_of(forked(plain, 1, None, draw))
    learned = [step for step, values in metrics.items() if "loss" in values]
    skipped = [step for step, values in metrics.items() if values["equal_groups"] == 1]
    assert sorted(learned + skipped) == list(range(1, 11))
    between = [step for step in skipped if learned[0] < step < learned[-1] - 1]
    assert between, skipped
    for step in skipped:
        assert (metrics[step]["skipped_updates"], metrics[step]["tokens"]) == (skipped.index(step) + 1, 0)
    forked(killed, 1, between[-1] + 1, draw)
    last = forked(killed, 2, None, draw)
    assert any(event.type == "log" and "resumed from step" in event.message for event in last)
    assert metrics_of(last) == metrics
    weights = final_weights(plain)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in final_weights(killed).items())


TIED = {**QUICK, "rules": [{"kind": "regex", "pattern": "(?!)"}], "max_steps": 3}


@pytest.mark.parametrize(
    ("changes", "most", "said"),
    [
        ({}, 0.0, "nothing could be learned in step 1: at most 2 of the 3 steps"),
        ({"refill": 1, **GRPO, "drop_equal": False}, 0.4, "in step 2, as in 1 before it: at most 1 of the 3 steps"),
    ],
    ids=["online_dpo", "grpo"],
)
def test_a_run_with_fewer_updates_than_it_was_asked_for_fails(make_stage, base_model, changes, most, said):
    with pytest.raises(FewerSteps, match=said):
        ran(make_stage({**TIED, "max_skipped": most, **changes}, model=base_model))


def test_a_run_whose_prompts_are_too_few_for_its_steps_fails_before_the_first(make_stage, base_model):
    stage = make_stage({**QUICK, "epochs": 1, "max_steps": 400}, model=base_model)
    with pytest.raises(FewerSteps, match="max_steps is 400, and 1 epoch of the prompts give only") as refused:
        ran(stage)
    assert "Set epochs to" in (refused.value.hint or "")
    assert not recorded(stage, "metrics")


@pytest.mark.parametrize("changes", [{}, GRPO], ids=["online_dpo", "grpo"])
def test_a_run_whose_answers_may_all_tie_ends_with_the_weights_that_it_started_with(make_stage, base_model, changes):
    stage = make_stage({**TIED, "max_skipped": 1.0, **changes}, model=base_model)
    metrics = ran(stage)
    assert [metrics[step]["skipped_updates"] for step in (1, 2, 3)] == [1, 2, 3]
    start = load_file(base_model / "model.safetensors")
    assert all(torch.equal(tensor, start[name]) for name, tensor in final_weights(stage).items())
    assert any("nothing to learn at step 1" in event.message for event in recorded(stage, "log"))
    assert any(event.kind == "tied_groups" for event in recorded(stage, "health"))


@pytest.mark.parametrize(("most", "error"), [(0.1, UnscoredAnswers), (1.0, BadSource)])
def test_answers_without_rewards_fail_the_run_as_in_other_methods(make_stage, base_model, most, error):
    """Labelled rows have no reference answer."""
    config = {**QUICK, "rules": [{"kind": "exact_match"}], "max_unscored": most}
    with pytest.raises(error, match="reward"):
        ran(make_stage(config, model=base_model))


@pytest.mark.parametrize("changes", [{}, {"method": "ppo", "minibatches": 1}], ids=["online_dpo", "ppo"])
def test_a_reward_model_of_another_family_scores_the_text(make_stage, base_model, foreign_model, tmp_path, changes):
    """Its tokenizer is another one, which the run's log mentions. A critic then starts from the policy."""
    judge = tmp_path / "judge"
    shutil.copytree(foreign_model, judge)
    model = AutoModelForSequenceClassification.from_pretrained(foreign_model, num_labels=1)
    model.config.pad_token_id = json.loads((judge / "config.json").read_text())["eos_token_id"]
    model.save_pretrained(judge)
    info = json.loads((judge / "steerboard.json").read_text())
    (judge / "steerboard.json").write_text(json.dumps(info | {"role": "reward"}))
    stage = make_stage({**QUICK, "rules": [], "max_steps": 1, **changes}, model=base_model)
    given = ModelInput(name="judge", path=str(judge), content_hash="j")
    stage.spec = stage.spec.model_copy(update={"inputs": {**stage.spec.inputs, "reward": given}})
    values = ran(stage)[1]
    assert (values["unscored"], values["reward"] != 0) == (0, True)
    said = [event.message for event in recorded(stage, "log")]
    assert any("is given each answer as text" in message for message in said)
    if changes:
        assert any("the critic starts from the latter, with a new head" in message for message in said)
        critic = json.loads((stage.directory / "outputs" / "critic" / "steerboard.json").read_text())
        assert critic["lineage"]["parent"] == stage.model("model").content_hash


OTHER_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}{{ m.role }}> {{ m.content }}{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}assistant> {% endif %}"
)


@pytest.mark.parametrize("window", [128, 40], ids=["template", "window"])
def test_a_reward_model_of_the_same_tokens_reads_an_answer_as_it_was_trained_to(
    make_stage, base_model, reward_model, data_folder, tmp_path, window
):
    """The model has another template, or a window that does not hold all that the policy reads: its reward is that of a
    labelling run."""
    judge = tmp_path / "judge"
    shutil.copytree(reward_model, judge)
    info = json.loads((judge / "steerboard.json").read_text()) | {"max_length": window}
    if window == 128:
        (judge / "chat_template.jinja").write_text(OTHER_TEMPLATE)
        info["template"] = "chat"
    (judge / "steerboard.json").write_text(json.dumps(info))
    config = {**QUICK, "method": "rloo", "rules": [], "max_steps": 1, "inspect_groups": 8}
    stage = make_stage(config, model=base_model)
    given = ModelInput(name="judge", path=str(judge), content_hash="j")
    stage.spec = stage.spec.model_copy(update={"inputs": {**stage.spec.inputs, "reward": given}})
    values = ran(stage)[1]
    loaded = load_reward_model(judge, device="cpu")
    rows = [json.loads(line) for line in (data_folder / "labelled.jsonl").read_text().splitlines()]
    scores = []
    for group in (event.group for event in recorded(stage, "sampled")):
        for answer in group.answers:
            rendered = loaded.renderer.render(rows[group.row]["prompt"], answer.text)
            ids = rendered.ids if answer.finished else rendered.ids[:-1]
            with torch.no_grad():
                expected = loaded.model(input_ids=torch.tensor([ids])).logits.item()
            assert answer.sources["model"] == pytest.approx(expected, abs=1e-4)
            scores.append(expected)
    assert len(scores) == 32
    assert values["unscored"] == 0
    said = "another template" if window == 128 else "reads at most 40 tokens, and the model to train 96"
    assert any(said in event.message and "as text" in event.message for event in recorded(stage, "log"))


def test_what_the_engine_samples_is_compared_with_the_policy_at_the_temperature_of_the_answers(make_stage, base_model):
    """The loss is of log-probs at temperature 1; those of the engine are at the one that it sampled at."""
    config = {**QUICK, "max_steps": 2, "temperature": 0.7, "lr": 1e-3}
    for reduction in ("sum", "mean"):
        metrics = ran(make_stage({**config, "reduction": reduction}, model=base_model))
        for values in metrics.values():
            assert values["sampler_difference"] <= values["sampler_difference_max"] < 1e-5
            assert values["entropy"] > 0.1
    begin = ModuleSampler.begin

    def other(self, answers, prompts, temperature):
        begin(self, answers, prompts, temperature)
        for answer in answers:
            answer.log_probs = [log_prob - 0.5 for log_prob in answer.log_probs]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ModuleSampler, "begin", other)
        with pytest.raises(SamplerDiffers, match=r"0\.5 nats"):
            ran(make_stage(config, model=base_model))


def test_beta_is_that_of_its_reduction_where_none_is_given():
    config = needed_method("online_dpo").config
    configs = [config.model_validate({"method": "online_dpo", "reduction": reduction}) for reduction in ("sum", "mean")]
    assert [training_of(config).objective()._method.config.strength for config in configs] == [0.1, 5.0]


def test_pairs_that_are_labelled_by_their_chances_lead_to_the_best_policy():
    """pi_ref exp(r / beta) / Z, from pairs of the policy's own answers where a is preferred to b with probability
    sigma(r_a - r_b). By the method's own loss, over all pairs by their probability: nothing is drawn. (A label that is
    certain has no such optimum: best against worst go apart without end.)"""
    beta = 0.5
    rewards = torch.tensor([1.0, 0.3, -0.2, 0.6], dtype=torch.float64)
    reference = torch.tensor([0.1, 0.9, -0.4, 0.0], dtype=torch.float64).log_softmax(0)
    given = {"method": "online_dpo", "beta": beta, "rules": [{"kind": "regex", "pattern": "s"}]}
    objective = training_of(needed_method("online_dpo").config.model_validate(given)).objective()
    a, b = (side.flatten() for side in torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij"))
    pairs = torch.stack([a, b], 1).flatten()
    prefers = (rewards[a] - rewards[b]).sigmoid()
    logits = reference.clone().requires_grad_()
    method = objective._method
    for _ in range(400):
        log_pi = logits.log_softmax(0)
        h = (log_pi - reference)[pairs].view(-1, 2)
        chance = (log_pi.detach()[a] + log_pi.detach()[b]).exp() * prefers
        loss = (chance * method.loss(h[:, 0], h[:, 1])).sum()
        (gradient,) = torch.autograd.grad(loss, logits)
        with torch.no_grad():
            logits -= 40.0 * gradient
    wanted = (reference + rewards / beta).softmax(0)
    torch.testing.assert_close(logits.detach().softmax(0), wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.long
def test_shaped_rewards_entropy_and_refills_resume_and_split_as_the_rest(make_stage, base_model):
    """A policy gradient with all of them: killed once, and cut into other passes."""
    config = {
        **QUICK,
        "method": "rloo",
        "max_steps": 8,
        "lr": 1e-3,
        "warmup_ratio": 0,
        "min_lr_ratio": 1,
        "checkpoint_every": 3,
        "normalise_rewards": True,
        "overlong_tokens": 4,
        "entropy_weight": 0.01,
        "refill": 3,
        "minibatches": 2,
    }
    plain, killed = (make_stage(config, model=base_model) for _ in range(2))
    draw = random.Random(1)
    metrics = metrics_of(forked(plain, 1, None, draw))
    forked(killed, 1, 5, draw)
    assert metrics_of(forked(killed, 2, None, draw)) == metrics
    weights = final_weights(plain)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in final_weights(killed).items())
    assert 0 < metrics[1]["entropy"] < np.log(400)
    assert any(values.get("refills", 0) > 0 for values in metrics.values())
    cut = ran(make_stage({**config, "micro_batch": 1, "batching": "padded", "max_steps": 2}, model=base_model))
    for step in (1, 2):
        for name in ("loss", "grad_norm", "entropy"):
            assert cut[step][name] == pytest.approx(metrics[step][name], rel=1e-3, abs=1e-6), (step, name)
