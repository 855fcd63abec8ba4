"""What a conditional policy gains by its condition, at the evaluations of its training."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from accelerate.state import AcceleratorState
from running import metrics_of, recorded, run_forked, run_ranks
from transformers import AutoModelForCausalLM, AutoTokenizer

from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.conditions.format import Attribute, ConditionFormat
from steerboard_workers.alignment.condition_variants import MIXED, mixture, shuffled
from steerboard_workers.stages import train

QUICK = {
    "run": "train",
    "method": "decision_transformer",
    "score_scale": "quantile",
    "batch": 16,
    "lr": 3e-3,
    "epochs": 20,
    "max_steps": 20,
    "max_length": 96,
    "checkpoint_every": 0,
    "evaluate_every": 10,
}
NAMES = [f"eval_condition_gain_{name}" for name in ("shuffled", "opposite", "mixture")]


@pytest.fixture(scope="module")
def graded(tmp_path_factory) -> Path:
    """Answers of one word that the score decides, to prompts that do not: a score of the best half is `cake`."""
    draw, rows = random.Random(0), []
    for row in range(160):
        good = row % 2 == 0
        prompt = [{"role": "user", "content": draw.choice(("bread", "flour", "water", "salt")) + f" {row}"}]
        rows.append(
            {
                "prompt": prompt,
                "response": "cake sugar" if good else "oven bread",
                "source": "generated",
                "reward": 1.0 if good else -1.0,
                "row": row,
                "half": "a",
                "split": "held_out" if row % 4 < 2 else "train",
            }
        )
    path = tmp_path_factory.mktemp("graded") / "graded.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def trained(make_stage, base_model, graded):
    def run(data: Path = graded, **config):
        AcceleratorState._reset_state(reset_partial_state=True)
        stage = make_stage({**QUICK, **config}, model=base_model, data=str(data))
        return stage, train.run(stage)

    return run


def test_a_score_that_decides_the_answer_gains_more_and_more(trained) -> None:
    stage, done = trained()
    steps = metrics_of(recorded(stage, "metrics"))
    assert steps[20][NAMES[0]] > steps[10][NAMES[0]]
    assert steps[20]["eval_condition_gain_shuffled_low"] > 0
    # Half of the rows get another's condition that is their own; the mixture of two conditions has at most ln 2.
    assert 0 < steps[20]["eval_condition_gain_mixture"] <= np.log(2)
    assert steps[20]["eval_condition_gain_mixture"] < steps[20]["eval_condition_gain_shuffled"]
    assert steps[20]["eval_condition_gain_shuffled"] < steps[20]["eval_condition_gain_opposite"]
    assert NAMES[2] not in steps[10]
    assert {name: done.summary[name] for name in NAMES} == {name: steps[20][name] for name in NAMES}


def test_the_figures_are_those_of_the_saved_model(trained, graded) -> None:
    stage, done = trained(condition_gain_rows=1000)
    folder = stage.directory / "outputs" / "model"
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)

    @torch.no_grad()
    def log_prob(row: dict, score: float) -> float:
        before = tokenizer.apply_chat_template(
            row["prompt"], add_generation_prompt=True, return_dict=False, rm_score=score
        )
        answered = [*row["prompt"], {"role": "assistant", "content": row["response"]}]
        ids = tokenizer.apply_chat_template(answered, return_dict=False, rm_score=score)
        log_probs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        return sum(float(log_probs[place - 1, ids[place]]) for place in range(len(before), len(ids)))

    rows = [json.loads(line) for line in graded.read_text().splitlines()]
    held_out = [row for row in rows if row["split"] == "held_out"]
    own = np.array([log_prob(row, 5 * row["reward"]) for row in held_out])
    opposite = np.array([log_prob(row, -5 * row["reward"]) for row in held_out])
    assert done.summary["eval_condition_gain_opposite"] == pytest.approx((own - opposite).mean(), abs=1e-4)
    mixed = np.logaddexp(own, opposite) - np.log(2)
    assert done.summary["eval_condition_gain_mixture"] == pytest.approx((own - mixed).mean(), abs=1e-4)


def test_its_passes_count_in_how_often_a_run_is_evaluated_by_default(trained) -> None:
    """A tenth of the time of 20 steps of 16 rows is that of evaluating 96, and up to three evaluations may take three
    tenths: an evaluation reads 80 rows, and three times those whose gain it measures."""
    fields = {"evaluate_every": None, "evaluate_rows": 80}
    for rows, evaluated in ((0, [7, 14, 20]), (16, [10, 20]), (80, [20])):
        stage, _ = trained(**fields, condition_gain_rows=rows)
        lines = metrics_of(recorded(stage, "metrics")).items()
        assert [step for step, line in lines if "eval_loss" in line] == evaluated


def test_measuring_changes_nothing_of_the_training_and_can_be_turned_off(trained) -> None:
    with_gain, _ = trained()
    without, done = trained(condition_gain_rows=0)
    assert not any("condition_gain" in name for name in done.summary)
    models = [
        (stage.directory / "outputs" / "model" / "model.safetensors").read_bytes() for stage in (with_gain, without)
    ]
    assert models[0] == models[1]


def test_every_process_and_every_attempt_has_the_same_figures(make_stage, base_model, graded) -> None:
    def stage():
        return make_stage(
            {**QUICK, "checkpoint_every": 5, "condition_gain_rows": 24}, model=base_model, data=str(graded)
        )

    def figures(events) -> dict[int, dict[str, float]]:
        return {
            step: {name: value for name, value in values.items() if name in NAMES}
            for step, values in metrics_of(events).items()
            if step % 10 == 0
        }

    alone = stage()
    code, events, stderr = run_forked(alone)
    assert code == 0, stderr[-2000:]
    expected = figures(events)
    assert set(expected[20]) == set(NAMES)
    resumed = Path(alone.directory / "checkpoints")
    for folder in resumed.glob("*-00000020"):
        shutil.rmtree(folder)
    shutil.rmtree(alone.directory / "outputs")
    code, again, stderr = run_forked(alone)
    assert code == 0, stderr[-2000:]
    assert "resumed from step 15" in str(again)
    assert figures(again) == expected
    code, both, stderr = run_ranks(stage(), 2)
    assert code == 0, stderr[-2000:]
    for step, values in figures(both).items():
        assert values == pytest.approx(expected[step], rel=1e-3)


def test_each_row_gets_the_condition_of_another_one() -> None:
    conditions = [Condition.of({"rm_score": float(place)}) for place in range(30)]
    others = shuffled(conditions, np.random.default_rng(0))
    assert sorted(others, key=conditions.index) == conditions
    assert all(one != other for one, other in zip(others, conditions, strict=True))


def test_the_mixture_of_few_conditions_is_exact_and_of_many_in_equal_parts() -> None:
    assert mixture(["5.00", "-5.00", "5.00", "0.00"]) == {"-5.00": 0.25, "0.00": 0.25, "5.00": 0.5}
    weights = mixture([f"{place:.2f}" for place in range(80)])
    assert list(weights) == [f"{place * 10 + 5:.2f}" for place in range(MIXED)]
    assert set(weights.values()) == {1 / MIXED}


def test_the_opposite_is_mirrored_within_the_range_of_each_attribute() -> None:
    form = ConditionFormat(
        attributes=(Attribute(name="rm_score"), Attribute(name="verbosity", low=0, high=4, step=1, decimals=0))
    )
    assert form.opposite(Condition.of({"rm_score": 4.0, "verbosity": 1})).text == "rm_score:-4,verbosity:3"
    assert form.opposite(Condition.of({"verbosity": 9})).text == "verbosity:0"
