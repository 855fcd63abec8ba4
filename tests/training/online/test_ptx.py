"""PPO-ptx: texts are learned by their likelihood next to rewards, in an order that no kill changes."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from running import forked, metrics_of, ran, run_forked, run_ranks, weights_of
from torch.nn import functional as F
from torch.testing import assert_close

from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.methods import needed_method
from steerboard_contracts.stage.inputs import DatasetInput
from steerboard_contracts.stage.spec import STAGE_FILE
from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.online.pretraining import PretrainingTexts
from steerboard_workers.stages.distributed.strategies import DDPStrategy
from steerboard_workers.stages.models.model_io import load_policy
from steerboard_workers.stages.runtime import Stage

CONFIG = {
    "run": "train",
    "method": "ppo",
    "batch": 8,
    "minibatches": 2,
    "epochs": 9,
    "max_steps": 7,
    "lr": 3e-3,
    "temperature": 0.7,
    "max_length": 96,
    "max_new_tokens": 6,
    "rules": [{"kind": "regex", "pattern": "s"}],
    "evaluate_rows": 4,
    "checkpoint_seconds": 0,
    "checkpoint_every": 2,
    "ptx_coefficient": 2.5,
    "ptx_batch": 3,
}
ROWS = 10
HELD_OUT = 2
WORDS = ("bread", "flour", "water", "salt", "yeast", "oven", "cake", "sugar", "eggs", "sky", "blue", "light")


@pytest.fixture(scope="module")
def texts(tmp_path_factory) -> Path:
    draw = random.Random(3)
    rows = []
    for row in range(ROWS):
        prompt, response = (" ".join(draw.choices(WORDS, k=draw.randint(2, 20))) for _ in range(2))
        place = {"row": row, "split": "held_out" if row < HELD_OUT else "train", "half": "a"}
        rows.append({"prompt": [{"role": "user", "content": prompt}], "response": response, **place})
    path = tmp_path_factory.mktemp("texts") / "texts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def started(make_stage, base_model, texts):
    """started(**config) -> a stage; with `model` another start, with `given` another file, or None for no dataset."""

    def start(model: Path = base_model, given: Path | None = texts, **config) -> Stage:
        stage = make_stage({**CONFIG, **config}, model=model)
        inputs = dict(stage.spec.inputs)
        if given is not None:
            about = {"type": "dataset", "name": "texts", "kind": "instructions", "rows": 0, "content_hash": "t"}
            inputs["pretraining"] = DatasetInput.model_validate(about | {"path": str(given)})
        spec = stage.spec.model_copy(update={"inputs": inputs})
        (stage.directory / STAGE_FILE).write_text(spec.model_dump_json())
        return Stage(stage.directory, spec, stage._events)

    return start


def gradients_of(stage: Stage, monkeypatch) -> tuple[dict[str, torch.Tensor], dict[str, float]]:
    """The gradients of the first step, before they are clipped, by name; and its metrics."""
    gradients: dict[str, torch.Tensor] = {}
    step = DDPStrategy.step

    def recorded(self, lr, held=()):
        # The last one: the step before is the rehearsal's.
        gradients.update({name: p.grad.clone() for name, p in self._own.items()})
        return step(self, lr, held)

    with monkeypatch.context() as patch:
        patch.setattr(DDPStrategy, "step", recorded)
        metrics = ran(stage)
    return gradients, metrics[1]


def likelihood_of(model: Path, texts: Path) -> tuple[dict[str, torch.Tensor], float]:
    """Gradient and value of -log pi at temperature 1, the mean over the labels of all training rows, one by one."""
    policy = load_policy(model, "fp32", "cpu")
    rows = [row for row in map(json.loads, texts.read_text().splitlines()) if row["split"] == "train"]
    groups = policy.renderer.render_groups([row["prompt"] for row in rows], [[row["response"]] for row in rows])
    total, labels = torch.zeros(()), 0
    for group in groups:
        (response,) = group.responses
        logits = policy.model(input_ids=torch.tensor([group.prompt + response])).logits[0]
        total = total + F.cross_entropy(logits[len(group.prompt) - 1 : -1], torch.tensor(response), reduction="sum")
        labels += len(response)
    loss = total / labels
    loss.backward()
    return {name: p.grad for name, p in policy.model.named_parameters()}, loss.item()


@pytest.mark.parametrize(
    ("method", "config"), [("ppo", {}), ("grpo", {"answers": 3, "entropy_weight": 0.01, "micro_batch": 2})]
)
def test_the_gradient_is_that_of_the_rewards_and_of_the_texts_which_are_computed_apart(
    started, base_model, texts, monkeypatch, method, config
):
    """The policy alone among several models learns the texts, and at temperature 1, whatever answers are sampled at."""
    config = {**config, "method": method, "max_steps": 1, "minibatches": 1}
    both, metrics = gradients_of(started(**config, ptx_batch=ROWS - HELD_OUT), monkeypatch)
    alone, without = gradients_of(started(given=None, **config, ptx_coefficient=0, ptx_batch=None), monkeypatch)
    of_texts, loss = likelihood_of(base_model, texts)
    assert metrics["ptx_loss"] == pytest.approx(loss, rel=1e-5)
    assert metrics["loss"] == pytest.approx(without["loss"], abs=1e-6)
    assert "ptx_loss" not in without
    learned = 0
    for name, gradient in alone.items():
        added = of_texts[name.removeprefix("parts.model.").removeprefix("model.")] if "critic" not in name else 0.0
        learned += "critic" not in name
        assert_close(both[name], gradient + 2.5 * added, rtol=1e-4, atol=2e-6)
    assert learned == len(of_texts)
    assert max(gradient.abs().max() for gradient in of_texts.values()) > 1e-2


@pytest.mark.long
def test_a_killed_run_learns_the_same_texts_bit_for_bit(started):
    """Nothing is learned of the texts while only the critic learns."""
    config = {"critic_lr": 3e-3, "critic_warmup": 1, "max_steps": 6, "checkpoint_every": 1}
    whole, killed, draw = started(**config), started(**config), random.Random(11)
    metrics = metrics_of(forked(whole, 1, None, draw))
    assert ["ptx_loss" in metrics[step] for step in range(1, 7)] == [False] * 2 + [True] * 4
    forked(killed, 1, 4, draw)
    last = forked(killed, 2, None, draw)
    assert any("resumed from step" in event.message for event in last if event.type == "log")
    assert metrics_of(last) == metrics
    for output in ("model", "critic"):
        weights = weights_of(killed, output)
        assert all(torch.equal(tensor, weights[name]) for name, tensor in weights_of(whole, output).items())


def test_each_text_comes_once_in_a_pass_and_passes_go_on_for_as_long_as_the_steps():
    config = needed_method("ppo").config.model_validate({"method": "ppo", "ptx_coefficient": 1, "ptx_batch": 3})
    ids = np.arange(4, dtype=np.int32)
    texts = PretrainingTexts([Example(row, ids, (ids,)) for row in range(8)], config, steps=9)
    rows = [[e.row for e in texts.step(step).examples] for step in range(9)]
    assert [len(part) for part in rows] == [3] * 9
    drawn = list(itertools.chain.from_iterable(rows))
    assert [sorted(drawn[start : start + 8]) for start in (0, 8, 16)] == [list(range(8))] * 3
    assert drawn[:8] != drawn[8:16]


def test_texts_that_are_learned_become_likelier(started, texts):
    stage = started(max_steps=12, minibatches=1, ptx_batch=4, ptx_coefficient=10.0, lr=1e-2)
    metrics = ran(stage)
    losses = [metrics[step]["ptx_loss"] for step in range(1, 13)]
    assert sum(losses[-2:]) < 0.8 * sum(losses[:2]), losses
    done = [event for event in stage._events.events if event.type == "log" and "texts" in event.message]
    assert any(f"{ROWS - HELD_OUT} training" in event.message for event in done)


def test_as_many_texts_as_answers_are_learned_by_default():
    config = needed_method("grpo").config.model_validate(
        {"method": "grpo", "batch": 8, "answers": 4, "minibatches": 2, "ptx_coefficient": 1}
    )
    assert config.ptx_rows == 16


def test_a_dataset_that_is_missing_or_all_held_out_fails_before_the_first_step(started, texts, tmp_path):
    with pytest.raises(BadInput, match="needs an input named pretraining"):
        ran(started(given=None))
    rows = [json.loads(line) | {"split": "held_out"} for line in texts.read_text().splitlines()]
    held_out = tmp_path / "held_out.jsonl"
    held_out.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(EmptySelection, match="no training rows are left of texts"):
        ran(started(given=held_out))


@pytest.mark.long
@pytest.mark.parametrize("strategy", ["ddp", "zero2"])
def test_two_processes_learn_texts_and_answers_as_one_does(started, wide_model, strategy):
    results = []
    config = {"model": wide_model, "lr": 1e-3, "critic_lr": 1e-3, "max_steps": 4}
    for run, changes in ((run_forked, {}), (run_ranks, {"strategy": strategy, "micro_batch": 2})):
        stage = started(**{**config, **changes})
        code, events, stderr = run(stage)
        assert code == 0, stderr[-3000:]
        results.append((metrics_of(events), weights_of(stage), weights_of(stage, "critic")))
    (one, *weights), (two, *others) = results
    for step, values in one.items():
        for name in ("loss", "ptx_loss", "value_loss", "reward", "grad_norm"):
            if name in values:
                assert two[step][name] == pytest.approx(values[name], rel=1e-3, abs=1e-4), (step, name)
    for mine, theirs in zip(weights, others, strict=True):
        for name, tensor in mine.items():
            assert_close(theirs[name], tensor, rtol=1e-3, atol=2e-4)
