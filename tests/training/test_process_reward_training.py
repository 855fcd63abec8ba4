"""Training a process reward model: what it learns of labelled steps, what it leaves out, and how it is read later."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from accelerate.state import AcceleratorState
from running import metrics_of, recorded

from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.methods.process_reward_model import ProcessRewardModelConfig
from steerboard_contracts.models import ModelInfo
from steerboard_workers.alignment.step_rewards import step_probabilities
from steerboard_workers.stages import base, train
from steerboard_workers.stages.models.model_io import load_reward_model
from steerboard_workers.stages.models.scoring import Scorable, reward_engine, score_texts

QUICK = {
    "run": "train",
    "method": "process_reward_model",
    "batch": 8,
    "epochs": 10,
    "max_steps": 3,
    "lr": 1e-3,
    "checkpoint_every": 0,
    "max_length": 96,
}
NUMBERS = range(1, 5)


@pytest.fixture
def trained(make_stage, base_model):
    """trained(data=..., **config) -> (stage, succeeded)."""

    def run(data: str = "stepwise", model: Path = base_model, **config):
        AcceleratorState._reset_state(reset_partial_state=True)
        stage = make_stage({**QUICK, **config}, model=model, data=data)
        return stage, train.run(stage)

    return run


@pytest.fixture
def rows(tmp_path):
    """rows([...]) -> the file of a stepwise dataset, all of it to train on but every fifth row."""

    def write(samples: list[dict]) -> str:
        path = tmp_path / "rows.jsonl"
        with path.open("w") as file:
            for row, sample in enumerate(samples):
                prompt = [{"role": "user", "content": sample.pop("prompt", "bread?")}]
                place = {"row": row, "split": "held_out" if row % 5 == 0 else "train", "half": "a"}
                file.write(json.dumps({"prompt": prompt, **sample, **place}) + "\n")
        return str(path)

    return write


def folder_of(stage) -> Path:
    return stage.directory / "outputs" / "model"


def doubles(draw: random.Random, rows: int) -> list[dict]:
    """Two sums to each prompt, about half of them wrong."""
    samples = []
    for _ in range(rows):
        steps, labels = [], []
        for _ in range(2):
            a, right = draw.choice(NUMBERS), draw.random() < 0.5
            others = [c for c in NUMBERS if c != a]
            steps.append(f"{a} + {a} = {2 * (a if right else draw.choice(others))}")
            labels.append(right)
        samples.append({"prompt": "Add.", "completions": steps, "labels": labels})
    return samples


def test_it_starts_at_ln_2_and_learns_which_steps_are_right(trained):
    stage, done = trained(max_steps=40, lr=3e-3)
    steps = metrics_of(recorded(stage, "metrics"))
    assert steps[1]["loss"] == pytest.approx(np.log(2), abs=0.03)
    assert done.summary["held_out_accuracy"] > 0.9  # the longer step is the right one
    assert done.summary["answers"] == 20
    assert {"step_accuracy", "first_wrong_accuracy", "step_probability", "right_steps"} <= set(steps[1])
    assert done.outputs[0].role == "reward"
    info = ModelInfo.model_validate_json((folder_of(stage) / "steerboard.json").read_text())
    assert info.process.model_dump() == {"separator": "\n", "aggregate": "min"}


@pytest.mark.long
def test_it_finds_the_wrong_steps_of_sums(make_stage, trained, rows):
    samples = doubles(random.Random(0), 900)
    data = rows(samples)
    texts = {"run": "base", "source": "random:tiny-llama", "vocabulary": 300, "layers": 2, "hidden": 48, "heads": 2}
    start = make_stage({**texts, "max_length": 96}, data=data)
    base.run(start)
    stage, done = trained(data, folder_of(start), max_steps=220, lr=2e-3, batch=32, epochs=50)
    assert done.summary["eval_step_accuracy"] > 0.9
    assert done.summary["eval_first_wrong_accuracy"] > 0.8
    rewards = reward_engine(load_reward_model(folder_of(stage)))
    answers = ["1 + 1 = 2\n3 + 3 = 6", "1 + 1 = 2\n3 + 3 = 8", "1 + 1 = 4\n3 + 3 = 6"]
    values = score_texts(rewards, [Scorable([{"role": "user", "content": "Add."}], text) for text in answers], 4096)
    assert values[0] > 0.5 > max(values[1:])


def test_an_answer_is_scored_by_the_very_logits_that_were_learned(trained):
    stage, _ = trained(aggregate="product")
    loaded = load_reward_model(folder_of(stage))
    assert loaded.renderer.process.aggregate == "product"
    prompt, steps = [{"role": "user", "content": "bread?"}], ["flour water.", "salt."]
    (value,) = score_texts(reward_engine(loaded), [Scorable(prompt, "\n".join(steps))], 4096)
    ids = loaded.renderer.render(prompt, "\n".join(steps)).ids
    line = next(at for at in range(len(ids)) if loaded.tokenizer.decode(ids[: at + 1]).endswith("water.\n"))
    with torch.no_grad():
        hidden = loaded.model.model(torch.tensor([ids])).last_hidden_state[0]
        logits = loaded.model.score(hidden[[line, -1]]).squeeze(-1).numpy()
    assert value == pytest.approx(step_probabilities(logits).prod(), rel=1e-4)


def test_last_step_only_learns_one_label_of_each_answer(trained):
    for only, labels in ((False, 16), (True, 8)):
        stage, _ = trained(last_step_only=only, max_steps=1)
        first = metrics_of(recorded(stage, "metrics"))[1]
        # Every answer has a right and a wrong step; of the last ones either.
        assert (first["right_steps"] * labels) % 1 == pytest.approx(0, abs=1e-6)
        assert only is (first["right_steps"] != 0.5) or first["right_steps"] == 0.5
        assert ("flawless_accuracy" in first) is only


def test_of_an_answer_that_is_cut_the_whole_steps_are_learned(trained, rows):
    cut = {"completions": ["oven.", "bread " * 90], "labels": [True, False]}
    stage, done = trained(rows([dict(cut) for _ in range(20)]), max_length=32, too_long="truncate")
    assert done.summary["truncated_rows"] == 16
    assert metrics_of(recorded(stage, "metrics"))[1]["right_steps"] == 1.0
    with pytest.raises(EmptySelection):
        trained(rows([dict(cut) for _ in range(20)]), max_length=32, too_long="truncate", last_step_only=True)


def test_a_separator_within_a_step_is_warned_of_and_the_label_stands_at_the_end_of_the_step(trained, rows):
    divided = {"completions": ["oven.\nflour.", "salt."], "labels": [True, False]}
    stage, _ = trained(rows([dict(divided) for _ in range(20)]), max_steps=1)
    assert metrics_of(recorded(stage, "metrics"))[1]["right_steps"] == 0.5
    warned = [event.message for event in recorded(stage, "log") if event.level == "warning"]
    assert any("'\\n' within a step" in line for line in warned)
    stage, _ = trained(rows([dict(divided) for _ in range(20)]), max_steps=1, separator="\n\n")
    assert not [event for event in recorded(stage, "log") if event.level == "warning" and "separator" in event.message]


@pytest.mark.parametrize("written", ["\n\t#", r"\n\t#"])
def test_a_separator_is_the_same_written_out_or_not(written):
    config = ProcessRewardModelConfig(method="process_reward_model", separator=written)
    assert (config.separator, config.divider) == (r"\n\t#", "\n\t#")
    assert ProcessRewardModelConfig.model_validate(config.model_dump()) == config


def test_a_separator_that_the_tokenizer_lacks_is_refused_before_training(trained, base_model, monkeypatch):
    from steerboard_workers.alignment.step_ends import StepEnds

    monkeypatch.setattr(StepEnds, "_decoded", lambda self, ids: "?" * len(ids))
    with pytest.raises(BadInput, match="does not keep the separator"):
        trained()


def test_splitting_a_batch_changes_the_loss_by_rounding_only(trained):
    curves = []
    for settings in ({}, {"micro_batch": 2}, {"batching": "padded", "micro_batch": 3}):
        stage, _ = trained(**settings)
        steps = metrics_of(recorded(stage, "metrics"))
        curves.append([steps[step]["loss"] for step in sorted(steps)])
    for curve, other in itertools.pairwise(curves):
        assert curve == pytest.approx(other, rel=1e-4)
