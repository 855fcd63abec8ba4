"""Distillation as a run: the student comes near its teacher, exactly so when split or resumed, and its cost shows."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
import torch
from running import changed_weights, final_weights, forked, metrics_of, ran, recorded, run_ranks, weights_of
from torch.testing import assert_close

from steerboard_contracts.errors import BadInput
from steerboard_contracts.stage.inputs import ModelInput
from steerboard_contracts.stage.spec import STAGE_FILE
from steerboard_workers.alignment import divergence
from steerboard_workers.alignment.methods.distillation import TaughtAnswers
from steerboard_workers.alignment.online.mismatch import SamplerDiffers
from steerboard_workers.alignment.online.objective import SAMPLED as SAMPLED_LOG_PROBS
from steerboard_workers.stages.training.sampling.live_policy import ModuleSampler

QUICK = {
    "run": "train",
    "method": "distillation",
    "batch": 8,
    "epochs": 9,
    "max_steps": 12,
    "lr": 1e-2,
    "max_length": 96,
    "max_new_tokens": 8,
    "evaluate_rows": 8,
    "evaluate_every": 4,
    "checkpoint_seconds": 0,
    "checkpoint_every": 5,
}
REWARDED = {"alpha": 0.5, "answers": 4, "rules": [{"kind": "regex", "pattern": "s"}]}
SAMPLED = {"divergence": "sampled_reverse_kl"}


@pytest.fixture(scope="module")
def teacher(make_stage, base_model):
    """The base model, which has learned some answers."""
    learned = {"run": "train", "method": "sft", "batch": 16, "epochs": 9, "max_steps": 40, "lr": 1e-2, "max_length": 96}
    stage = make_stage({**learned, "evaluate_rows": 4}, model=base_model)
    ran(stage)
    return stage.directory / "outputs" / "model"


@pytest.fixture(scope="module")
def taught(make_stage, base_model, teacher):
    """taught(**config) -> a Stage whose student learns from the teacher."""

    def start(model=base_model, of=teacher, **config):
        stage = make_stage({**QUICK, **config}, model=model)
        given = ModelInput(name="teacher", path=str(of), content_hash="t")
        stage.spec = stage.spec.model_copy(update={"inputs": {**stage.spec.inputs, "teacher": given}})
        (stage.directory / STAGE_FILE).write_text(stage.spec.model_dump_json())
        return stage

    return start


def timed(events: list) -> dict[int, dict[str, float]]:
    return {event.step: event.values for event in events if event.type == "metrics"}


KINDS = {
    "reverse_kl": {"divergence": "reverse_kl"},
    "forward_kl": {"divergence": "forward_kl"},
    "jsd": {"divergence": "jsd", "beta": 0.3, "reducer": "sequence"},
    "sampled": {**SAMPLED, "answers": 4, "max_steps": 24},
    "half": {"on_policy": 0.5},
    "supervised": {"on_policy": 0.0},
}


@pytest.mark.parametrize("kind", ["reverse_kl", *(pytest.param(k, marks=pytest.mark.long) for k in list(KINDS)[1:])])
def test_the_student_comes_nearer_to_its_teacher(taught, kind):
    changes = KINDS[kind]
    stage = taught(**changes)
    metrics = ran(stage)
    last = max(metrics)
    assert metrics[last]["divergence"] < 0.25 * metrics[1]["divergence"]
    assert metrics[last]["eval_divergence"] < 0.5 * metrics[4]["eval_divergence"]
    assert all(values["sampler_difference_max"] < 1e-4 for values in metrics.values() if "sampler_difference" in values)
    if changes != KINDS["sampled"]:
        assert metrics[last]["eval_top_agreement"] > metrics[4]["eval_top_agreement"]
        assert metrics[last]["entropy"] < metrics[1]["entropy"] - 1
        assert all(0 < values["teacher_entropy"] < np.log(400) for values in metrics.values())


def test_the_teachers_time_is_reference_and_no_part_of_the_update(taught):
    stage = taught(max_steps=2, evaluate_rows=1)
    ran(stage)
    for values in timed(recorded(stage, "metrics")).values():
        assert values["reference_tokens"] == values["tokens"] == values["update_tokens"]
        assert values["reference_seconds"] > 0
        assert values["update_seconds"] > values["reference_seconds"] / 10
    assert sum(stage.phases.so_far()["reference"].model_dump().values()) > 0


@pytest.mark.parametrize(("share", "expected"), [(0.5, [(1, 2), (2, 1)]), (0.0, [(0, 3), (0, 3)])])
def test_a_share_of_the_prompts_is_answered_by_the_student_and_the_rest_by_the_dataset(
    taught, data_folder, monkeypatch, share, expected
):
    """One or two of three prompts a step, so that the share is right over several steps."""
    rows = {row["row"]: row for row in map(json.loads, (data_folder / "labelled.jsonl").read_text().splitlines())}
    batch, seen = TaughtAnswers.batch, []

    def watched(self, step):
        made = batch(self, step)
        own = [e for e in made.examples if not np.isnan(e.token_values[SAMPLED_LOG_PROBS][0]).any()]
        others = [e for e in made.examples if np.isnan(e.token_values[SAMPLED_LOG_PROBS][0]).all()]
        tokenizer = self.context.renderer.tokenizer
        for example in others:
            assert (
                tokenizer.decode(example.responses[0], skip_special_tokens=True).strip()
                == rows[example.row]["response"]
            )
        seen.append((len(own), len(others)))
        return made

    monkeypatch.setattr(TaughtAnswers, "batch", watched)
    ran(taught(on_policy=share, batch=3, max_steps=4, evaluate_rows=1))
    assert seen == 2 * expected


def test_a_teacher_that_is_the_student_teaches_nothing(taught, base_model):
    values = ran(taught(of=base_model, max_steps=1, evaluate_rows=1))[1]
    assert values["divergence"] == pytest.approx(0, abs=1e-6)
    assert values["top_agreement"] == 1
    assert values["entropy"] == pytest.approx(values["teacher_entropy"], rel=1e-6)


# -- one result, however it is computed --------------------------------------------------------------------------------


def same(one: dict[int, dict[str, float]], other: dict[int, dict[str, float]], rel: float = 1e-4) -> None:
    for step, values in one.items():
        for name in ("loss", "divergence", "entropy", "teacher_entropy", "top_agreement", "on_policy_share"):
            if name in values:
                assert other[step][name] == pytest.approx(values[name], rel=rel, abs=1e-5), (step, name)


@pytest.mark.parametrize("reducer", ["token", pytest.param("sequence", marks=pytest.mark.long)])
def test_no_split_of_a_batch_and_no_chunk_of_its_logits_changes_a_run(taught, monkeypatch, reducer):
    config = {"on_policy": 0.5, "max_steps": 3, "lr": 1e-3, "reducer": reducer}
    whole, parts = taught(**config), taught(**config, micro_batch=1, batching="packed")
    expected = ran(whole)
    monkeypatch.setattr(divergence, "CHUNK_ELEMENTS", 3 * 400)
    same(expected, ran(parts))
    for name, tensor in weights_of(whole).items():
        assert_close(weights_of(parts)[name], tensor, rtol=1e-3, atol=5e-5)


RESUMED = [{"on_policy": 0.5}, pytest.param({**SAMPLED, **REWARDED}, marks=pytest.mark.long)]


@pytest.mark.parametrize("changes", RESUMED, ids=["half", "rewarded"])
def test_a_killed_run_resumes_bit_for_bit(taught, changes):
    plain, killed, draw = taught(**changes), taught(**changes), random.Random(3)
    expected = metrics_of(forked(plain, 1, None, draw))
    forked(killed, 1, 7, draw)
    last = forked(killed, 2, None, draw)
    assert any(event.type == "log" and "resumed from step" in event.message for event in last)
    assert metrics_of(last) == expected
    weights = final_weights(plain)
    assert all(torch.equal(tensor, weights[name]) for name, tensor in final_weights(killed).items())


@pytest.mark.long
@pytest.mark.parametrize("changes", [{"on_policy": 0.5}, {**SAMPLED, **REWARDED}], ids=["half", "rewarded"])
@pytest.mark.parametrize("strategy", ["ddp", "zero2"])
def test_two_processes_learn_as_one(taught, strategy, changes):
    config = {"max_steps": 3, "lr": 1e-3, "micro_batch": 3, **changes}
    one, two = taught(**config), taught(**config, strategy=strategy)
    expected = ran(one)
    code, events, stderr = run_ranks(two)
    assert code == 0, stderr[-3000:]
    same(expected, metrics_of(events), rel=1e-3)
    for name, tensor in weights_of(one).items():
        assert_close(weights_of(two)[name], tensor, rtol=1e-3, atol=5e-5)


def test_adapters_learn_from_a_whole_teacher(taught, teacher, tmp_path):
    student = changed_weights(teacher, tmp_path / "student", 0.1)
    metrics = ran(taught(student, lora={"rank": 8, "alpha": 16}, lr=0.02, evaluate_every=0))
    assert metrics[12]["divergence"] < 0.5 * metrics[1]["divergence"]


@pytest.mark.parametrize("precision", ["bf16"])
def test_distributions_are_compared_in_float32_whatever_makes_their_logits(taught, precision):
    exact, rounded = (ran(taught(max_steps=2, lr=1e-3, precision=p))[1] for p in ("fp32", precision))
    assert rounded["divergence"] == pytest.approx(exact["divergence"], rel=0.05)


# -- with a reward -----------------------------------------------------------------------------------------------------


def test_a_reward_is_learned_beside_and_shown_with_its_answers(taught):
    stage = taught(**REWARDED, max_steps=6, inspect_groups=2)
    metrics = ran(stage)
    assert all({"reward", "reward_regex", "divergence"} <= set(values) for values in metrics.values())
    groups = [event.group for event in recorded(stage, "sampled")]
    assert [len(group.answers) for group in groups] == [4] * 12
    assert any(answer.advantage for group in groups for answer in group.answers)
    alone = ran(taught(**REWARDED | {"alpha": 1.0, "rules": []}, max_steps=6))
    assert not {"reward", "unscored"} & set(alone[1])
    assert alone[1]["divergence"] == pytest.approx(metrics[1]["divergence"], rel=1e-6)
    assert alone[1]["loss"] != pytest.approx(metrics[1]["loss"], rel=1e-2)


def test_a_reward_of_no_weight_is_watched(taught):
    rules = [{"kind": "regex", "pattern": "s", "weight": 0}]
    values = ran(taught(rules=rules, max_steps=1, evaluate_rows=1))[1]
    assert "reward_regex" in values
    assert "reward" not in values


# -- what fails --------------------------------------------------------------------------------------------------------


def test_a_teacher_of_another_tokenizer_is_refused_with_what_differs_and_what_helps(taught, foreign_model):
    with pytest.raises(BadInput, match="the input teacher, has another tokenizer than the model to train: token") as no:
        ran(taught(of=foreign_model))
    assert no.value.code == "tokenizer_differs"
    assert "`generate` with it, then train `sft`" in (no.value.hint or "")


def test_a_teacher_that_reads_less_than_the_student_is_warned_of(taught, teacher, tmp_path):
    narrow = changed_weights(teacher, tmp_path / "narrow", 0.0)
    info = json.loads((narrow / "steerboard.json").read_text())
    (narrow / "steerboard.json").write_text(json.dumps(info | {"max_length": 64}))
    stage = taught(of=narrow, max_steps=1, evaluate_rows=1)
    ran(stage)
    said = [event.message for event in recorded(stage, "log")]
    assert any("the input teacher, reads at most 64 tokens, and the model to train 96" in message for message in said)


def test_rows_without_an_answer_are_refused_where_that_is_to_be_learned(taught, data_folder, tmp_path):
    rows = [json.loads(line) for line in (data_folder / "labelled.jsonl").read_text().splitlines()]
    prompts = [{name: row[name] for name in ("prompt", "row", "split")} for row in rows]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in prompts))
    stage = taught(on_policy=0.5)
    data = stage.spec.inputs["data"].model_copy(update={"path": str(tmp_path / "rows.jsonl"), "kind": "prompts"})
    stage.spec = stage.spec.model_copy(update={"inputs": {**stage.spec.inputs, "data": data}})
    with pytest.raises(BadInput, match=r"has no answer, and on_policy 0\.5 learns those of the dataset"):
        ran(stage)


def test_a_sampler_of_another_policy_fails_the_run(taught, monkeypatch):
    begin = ModuleSampler.begin

    def other(self, answers, prompts, temperature):
        begin(self, answers, prompts, temperature)
        for answer in answers:
            answer.log_probs = [log_prob - 0.5 for log_prob in answer.log_probs]

    monkeypatch.setattr(ModuleSampler, "begin", other)
    with pytest.raises(SamplerDiffers, match=r"0\.5 nats"):
        ran(taught(max_steps=1, evaluate_rows=1))
