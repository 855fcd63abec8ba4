"""A run with probe prompts shows what the model in training answers, step by step, and trains as without them."""

from __future__ import annotations

import itertools
import json

import pytest
from accelerate.state import AcceleratorState
from pydantic import TypeAdapter, ValidationError
from running import recorded
from safetensors.torch import load_file

from steerboard_contracts.stage.events import Probed
from steerboard_contracts.stage.inputs import ModelInput
from steerboard_contracts.train_config import TrainConfig
from steerboard_contracts.watching.probing import MOST_STEPS
from steerboard_workers.stages import generate, train
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.training.watching.probing import planned

QUICK = {"run": "train", "batch": 20, "max_steps": 4, "lr": 5e-3, "max_length": 96, "epochs": 10, "evaluate_every": 2}
PROBE = {"held_out": 3, "prompts": ["bread flour?"], "max_new_tokens": 12}
CONFIGS = {"sft": "labelled", "decision_transformer": "labelled", "dpo": "preferences", "kto": "unpaired"}


@pytest.fixture
def run(make_stage, base_model):
    def start(method: str, stage: Stage | None = None, **config) -> Stage:
        AcceleratorState._reset_state(reset_partial_state=True)
        given = {**QUICK, "checkpoint_every": 0, "probe": PROBE, "method": method, **config}
        if stage is None:
            stage = make_stage(given, model=base_model, data=CONFIGS[method])
        train.run(stage)
        return stage

    return start


def probed(stage: Stage) -> dict[int, Probed]:
    return {event.step: event for event in recorded(stage, "probed")}


def generated(make_stage, model, prompts: list[str], score: float | None) -> list[str]:
    """The answers of the generate stage, from a folder."""
    decoding = {"max_new_tokens": PROBE["max_new_tokens"]}
    config = {"run": "generate", "prompts": prompts, "score": score, "decoding": decoding, "precision": "fp32"}
    stage = make_stage(config, data=None)
    inputs = {"model": ModelInput(name="m", path=str(model), content_hash="m")}
    stage = Stage(stage.directory, stage.spec.model_copy(update={"inputs": inputs}), stage._events)
    generate.run(stage)
    return [answer["text"] for answer in json.loads((stage.directory / "outputs" / "answers.json").read_text())]


@pytest.mark.parametrize("method", CONFIGS)
def test_answers_at_each_evaluation_are_those_of_the_weights_at_that_step(run, make_stage, base_model, method):
    stage = run(method)
    by_step = probed(stage)
    assert list(by_step) == [0, 2, 4]
    # The start model knows no score; the policy that comes out is asked with its default, the highest.
    asked = 5.0 if method == "decision_transformer" else None
    conditions = [probe.condition and probe.condition.score for probe in by_step.values()]
    assert conditions == [None, asked, asked]
    prompts = by_step[4].prompts
    assert [prompt.row is None for prompt in prompts] == [False] * 3 + [True]
    own = [(place, prompt.messages[0]["content"]) for place, prompt in enumerate(prompts) if len(prompt.messages) == 1]
    for step, folder in ((0, base_model), (4, stage.directory / "outputs" / "model")):
        texts = generated(make_stage, folder, [text for _, text in own], asked if step else None)
        assert texts == [by_step[step].answers[place].text for place, _ in own]
    assert by_step[0].answers != by_step[4].answers


def test_a_probe_changes_nothing_of_the_model(run):
    # Dropout draws random numbers, of which answering must take none.
    config = {"lora": {"rank": 4, "dropout": 0.3}, "max_steps": 2, "evaluate_every": 1}
    folders = [run("sft", **config, **more).directory for more in ({}, {"probe": None})]
    weights = [load_file(folder / "outputs" / "model" / "model.safetensors") for folder in folders]
    assert weights[0].keys() == weights[1].keys()
    assert all(bool((weights[0][name] == weights[1][name]).all()) for name in weights[0])


def test_a_run_that_resumes_has_the_answers_of_the_steps_before(run):
    # The first attempt is whole, and its checkpoint of step 3 is there for another.
    stage = run("sft", checkpoint_every=3)
    whole = probed(stage)
    stage._events.events.clear()
    assert probed(run("sft", stage=stage)) == whole
    assert any("resumed from step 3" in event.message for event in recorded(stage, "log"))


def test_with_many_evaluations_answers_are_given_at_some_of_them_and_at_the_last():
    assert planned(4, 0) == [4]
    assert planned(5, 2) == [2, 4, 5]
    many = planned(1000, 1)
    assert len(many) < MOST_STEPS
    assert many[-1] == 1000
    assert len({b - a for a, b in itertools.pairwise(many)}) == 1


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"method": "reward_model", "probe": {}}, "writes no answers"),
        ({"method": "sft", "probe": {"score": 5}}, "take no score"),
        ({"method": "sft", "probe": {"held_out": 0}}, "nothing to answer"),
        ({"method": "sft", "probe": {"prompts": [" "]}}, "is empty"),
        ({"method": "sft", "probe": {}, "strategy": "zero3"}, "zero3"),
    ],
)
def test_what_a_probe_cannot_do_is_refused_before_the_run(config, told):
    with pytest.raises(ValidationError, match=told):
        TypeAdapter(TrainConfig).validate_python({"run": "train", **config})
