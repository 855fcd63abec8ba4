"""KTO as a stage: its first step, its reference point over the global batch, and data of both kinds."""

from __future__ import annotations

import json
import math
from collections import Counter

import pytest
import torch
from running import changed_weights, ran, recorded, with_config
from transformers import AutoModelForCausalLM

from steerboard_contracts.errors import BadInput
from steerboard_contracts.stage.inputs import ModelInput
from steerboard_workers.alignment.batches import batch_source
from steerboard_workers.alignment.methods.kto import Kto, KtoObjective
from steerboard_workers.stages.runtime import Stage

WORDS = ("bread", "flour", "water", "salt", "yeast", "oven", "cake", "sugar", "butter", "eggs", "sky", "blue")
# A row that is in none of the first steps.
LATE = 9
QUICK = {"batch": 8, "epochs": 10, "max_steps": 3, "lr": 1e-3, "checkpoint_every": 0, "max_length": 96}


@pytest.fixture
def stage_of(make_stage, base_model):
    """stage_of(reference=PATH, data=..., **config) -> a Stage."""

    def make(reference=None, data: str = "unpaired", model=base_model, **config) -> Stage:
        made = make_stage({"run": "train", "method": "kto", **QUICK, **config}, model=model, data=data)
        if reference is None:
            return made
        given = ModelInput(name="reference", path=str(reference), content_hash="r")
        spec = made.spec.model_copy(update={"inputs": {**made.spec.inputs, "reference": given}})
        return Stage(made.directory, spec, made._events)

    return make


@pytest.fixture
def prepared(monkeypatch):
    """The examples of each global batch that the objective has seen, and what it found."""
    seen: list = []
    prepare = KtoObjective.prepare

    def keep(self, examples, passes):
        result = prepare(self, examples, passes)
        seen.append((list(examples), result))
        return result

    monkeypatch.setattr(KtoObjective, "prepare", keep)
    return seen


@pytest.mark.parametrize("data", ["unpaired", "preferences"])
def test_the_first_step_costs_a_half(stage_of, data):
    stage = stage_of(data=data, lambda_undesirable=1.0)
    steps = ran(stage)
    first = steps[1]
    assert first["loss"] == pytest.approx(0.5, abs=1e-5)
    for name in ("z", "kl", "reward_desirable", "reward_undesirable"):
        assert first[name] == pytest.approx(0.0, abs=1e-3)
    assert steps[3]["loss"] != pytest.approx(0.5, abs=1e-4)
    assert {"eval_loss", "eval_z", "log_probs_desirable"} <= steps[3].keys()


def test_a_z_of_0_is_found(stage_of):
    """The first step has one, because the policy is its reference."""
    stage = stage_of(max_steps=1, health=[{"kind": "zero_z", "steps": 1}])
    assert ran(stage)[1]["z"] == 0
    (finding,) = recorded(stage, "health")
    assert (finding.step, finding.action) == (1, "note")
    assert finding.reason == "z is 0, once: each answer is learned by its own log-ratio alone"


def test_dropout_of_the_model_is_off(stage_of, base_model, tmp_path):
    """The policy would not be its reference in the first step with dropout."""
    folder = with_config(base_model, tmp_path / "model", attention_dropout=0.3)
    stage = stage_of(model=folder, max_steps=1)
    assert ran(stage)[1]["loss"] == pytest.approx(0.5, abs=1e-5)
    assert any("dropout is off" in event.message for event in recorded(stage, "log"))


def test_companions_are_read_as_the_model_reads_them_where_they_alone_are_longer_than_its_window(
    stage_of, base_model, tmp_path, monkeypatch
):
    """One row with a long prompt and a short answer, drawn late, among rows of short prompts with long answers: each is
    within the sliding window, but the long prompt with a long answer is not."""
    monkeypatch.setattr(batch_source, "REHEARSED_STEPS", 1)
    window = with_config(base_model, tmp_path / "model", model_type="mistral", sliding_window=24, architectures=None)
    reference = changed_weights(window, tmp_path / "reference", 0.3)
    rows = []
    for row in range(24):
        words = [WORDS[(row + place) % len(WORDS)] for place in range(14)]
        prompt, answer = (words[:12], words[:1]) if row == LATE else (words[:2], words[2:])
        thumb = {"prompt": [{"role": "user", "content": " ".join(prompt)}], "response": " ".join(answer)}
        rows.append(thumb | {"desirable": row % 2 == 0, "row": row, "split": "held_out" if row > 19 else "train"})
    path = tmp_path / "thumbs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = {"data": str(path), "model": window, "batch": 4, "max_steps": 5, "lr": 1e-6}
    stage = stage_of(reference, **config)
    steps = ran(stage)
    assert [e for e in recorded(stage, "log") if "attention sees 24 of them at most" in e.message]
    monkeypatch.setattr(Kto, "shares_prompt", False)
    plain = ran(stage_of(reference, batching="padded", **config))
    assert abs(plain[1]["kl"]) > 0.1
    for step, values in plain.items():
        assert steps[step]["kl"] == pytest.approx(values["kl"], rel=1e-5), step


def test_it_learns_what_is_desirable(stage_of):
    stage = stage_of(data="preferences", max_steps=40, lambda_desirable=2.0, beta=0.5)
    steps = ran(stage)
    last = steps[40]
    assert last["eval_loss"] < steps[1]["loss"]
    assert last["eval_margin"] > 1.0
    # What is desirable rises above the reference point, and what is not stays below.
    assert last["eval_reward_desirable"] > 0.5 * last["eval_z"] > last["eval_reward_undesirable"]
    warned = [event.message for event in recorded(stage, "log") if event.level == "warning"]
    assert len(warned) == 1
    assert "lr 0.001 is high" not in warned[0]


def test_rows_of_either_class_are_counted(stage_of, data_folder):
    stage = stage_of(max_steps=1)
    ran(stage)
    rows = [json.loads(line) for line in (data_folder / "unpaired.jsonl").read_text().splitlines()]
    train = [row["desirable"] for row in rows if row["split"] == "train"]
    info = json.loads((stage.directory / "outputs" / "model" / "steerboard.json").read_text())
    assert info["summary"]["desirable"] == sum(train)
    assert info["summary"]["undesirable"] == len(train) - sum(train)
    assert info["summary"]["empty_answers"] == info["summary"]["equal_pairs"] == 0


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_z_is_the_mean_log_ratio_of_answers_to_other_prompts(stage_of, other_model, base_model, prepared, reduction):
    """Both models are read by transformers: the start, which the first step has, and another reference."""
    steps = ran(stage_of(other_model, data="preferences", max_steps=1, reduction=reduction, beta=0.1))
    examples, values = [item for item in prepared if len(item[0]) == 8][-1]  # after those that are rehearsed
    policy, reference = (AutoModelForCausalLM.from_pretrained(path) for path in (base_model, other_model))

    def log_prob(model, example) -> float:
        ids = torch.tensor([*example.prompt, *example.responses[0]]).long()
        start = len(example.prompt)
        with torch.no_grad():
            log_probs = model(ids[None]).logits[0].log_softmax(-1)
        return float(log_probs[start - 1 : -1].gather(1, ids[start:, None]).sum())

    ratios = []
    for example in examples:
        other = example.companion
        assert other.responses[0].tolist() != example.responses[0].tolist()
        expected = log_prob(reference, other)
        assert float(other.frozen_log_probs["reference"][0]) == pytest.approx(expected, rel=1e-4)
        ratio = log_prob(policy, other) - expected
        ratios.append(ratio / len(other.responses[0]) if reduction == "mean" else ratio)
    kl = math.fsum(ratios) / len(ratios)
    assert abs(kl) > 0.005
    assert float(values["kl"]) == pytest.approx(kl, rel=1e-3)
    assert steps[1]["kl"] == pytest.approx(kl, rel=1e-3)
    assert steps[1]["z"] == max(0.0, steps[1]["kl"])


def test_no_prompt_meets_an_answer_of_its_own(stage_of, prepared):
    """A prompt of pairs does not meet its other side either, in any batch of any epoch."""
    ran(stage_of(data="preferences", max_steps=30))
    of_row: dict[int, set[bytes]] = {}
    for examples, _ in prepared:
        for example in examples:
            of_row.setdefault(example.row, set()).add(example.responses[0].tobytes())
    met = [(e.row, e.companion.responses[0].tobytes()) for examples, _ in prepared for e in examples]
    assert len(of_row) > 90
    assert all(len(answers) == 2 for answers in of_row.values())
    known = Counter(answer for answers in of_row.values() for answer in answers)
    assert not [row for row, answer in met if answer in of_row[row] and known[answer] == 1]


def test_loss_and_gradient_do_not_depend_on_how_a_batch_is_split(stage_of, other_model):
    def figures(**config) -> list[float]:
        steps = ran(stage_of(other_model, beta=0.5, lambda_desirable=2.0, **config))
        names = ("loss", "kl", "grad_norm", "reward_undesirable", "log_probs_undesirable")
        assert all(abs(values["kl"]) > 0.1 for values in steps.values())
        return [values[name] for _, values in sorted(steps.items()) for name in names if name in values]

    whole = figures(batching="padded")
    for split in ({"micro_batch": 3}, {"micro_batch": 1}, {"batching": "packed"}, {"batching": "padding_free"}):
        assert figures(**split) == pytest.approx(whole, rel=3e-4, abs=1e-4), split


def test_batches_of_one_answer_train(stage_of, other_model):
    """Each batch is of one class; z is there all the same."""
    steps = ran(stage_of(other_model, batch=1, max_steps=6, reduction="mean", beta=2.0))
    assert all(("reward_desirable" in v) != ("reward_undesirable" in v) for v in steps.values())
    assert len({values["kl"] for values in steps.values()}) == 6


def test_data_without_thumbs_is_refused(stage_of):
    with pytest.raises(BadInput, match="neither a response with `desirable`") as refused:
        ran(stage_of(data="labelled"))
    assert refused.value.code == "wrong_dataset_kind"
    assert "convert d pairs_from_ranks | best_against_worst | thumbs_from_scores`" in refused.value.hint


def test_data_of_which_one_class_is_dropped_for_its_length_is_refused(stage_of, tmp_path):
    """Long desirable answers, short others; and counts are of the rows that are left."""
    rows = []
    for row in range(16):
        desirable, fits = row % 2 == 0, row == 0
        answer = " ".join(WORDS[: 2 if fits or not desirable else 12] * (1 if fits or not desirable else 6))
        prompt = [{"role": "user", "content": WORDS[row % len(WORDS)]}]
        rows.append({"prompt": prompt, "response": answer, "desirable": desirable, "row": row, "split": "train"})
    path = tmp_path / "thumbs.jsonl"
    config = {"data": str(path), "too_long": "drop", "max_steps": 1, "max_length": 40}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    stage = stage_of(**config)
    ran(stage)
    info = json.loads((stage.directory / "outputs" / "model" / "steerboard.json").read_text())
    assert (info["summary"]["desirable"], info["summary"]["undesirable"]) == (1, 8)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows[1:]))
    with pytest.raises(BadInput, match="of the 7 desirable ones, 7 do not fit into 40 tokens") as refused:
        ran(stage_of(**config))
    assert refused.value.code == "one_sided_data"
    assert refused.value.hint == "Raise max_length, or set too_long to truncate."


def test_sharing_prompts_changes_no_step_beyond_rounding(stage_of, prepared, monkeypatch):
    """Both sides of a pair come together, so that there is something to share."""
    shared = ran(stage_of(data="preferences", max_steps=2))
    monkeypatch.setattr(Kto, "shares_prompt", False)
    apart = ran(stage_of(data="preferences", max_steps=2))
    for step, values in shared.items():
        for figure in ("loss", "grad_norm", "kl"):
            assert values[figure] == pytest.approx(apart[step][figure], rel=2e-4, abs=1e-4), (step, figure)
    examples, _ = [item for item in prepared if len(item[0]) == 8][-1]  # after those that are rehearsed
    assert [example.row for example in examples[::2]] == [example.row for example in examples[1::2]]
    assert all(one.weight > 0 > other.weight for one, other in zip(examples[::2], examples[1::2], strict=True))
