"""A process reward model as the reward of answers that training samples: the same reward as scoring gives them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from running import metrics_of, ran

from steerboard_contracts.stage.inputs import ModelInput
from steerboard_contracts.stage.spec import STAGE_FILE
from steerboard_workers.alignment.online.scoring import AnswerRewards
from steerboard_workers.alignment.step_ends import StepEnds
from steerboard_workers.alignment.step_rewards import aggregated
from steerboard_workers.stages.models.model_io import load_reward_model
from steerboard_workers.stages.runtime import Stage

# Random weights write few line breaks.
SEPARATOR = "a"
QUICK = {
    "run": "train",
    "batch": 4,
    "answers": 2,
    "max_steps": 2,
    "max_length": 96,
    "max_new_tokens": 16,
    "checkpoint_every": 0,
    "evaluate_rows": 2,
    "lr": 1e-3,
}


@pytest.fixture
def process_reward_model(reward_model, tmp_path) -> Path:
    folder = tmp_path / "steps"
    shutil.copytree(reward_model, folder)
    info = json.loads((folder / "steerboard.json").read_text())
    info["process"] = {"separator": SEPARATOR, "aggregate": "product"}
    (folder / "steerboard.json").write_text(json.dumps(info))
    return folder


@pytest.mark.parametrize("method", ["grpo", pytest.param("rloo", marks=pytest.mark.long)])
def test_a_sampled_answer_gets_the_aggregate_of_its_steps(
    make_stage, base_model, process_reward_model, monkeypatch, method
):
    given = []
    scoring = AnswerRewards._of_model

    def recording(self, model, answers, examples):
        rewards = scoring(self, model, answers, examples)
        given.extend(zip(examples, rewards, strict=True))
        return rewards

    monkeypatch.setattr(AnswerRewards, "_of_model", recording)
    stage = make_stage({**QUICK, "method": method}, model=base_model)
    reward = ModelInput(name="reward", path=str(process_reward_model), content_hash="f")
    spec = stage.spec.model_copy(update={"inputs": {**stage.spec.inputs, "reward": reward}})
    (stage.directory / STAGE_FILE).write_text(spec.model_dump_json())
    stage = Stage(stage.directory, spec, stage._events)
    ran(stage)
    loaded = load_reward_model(process_reward_model)
    ends = StepEnds(loaded.tokenizer, loaded.renderer.stop_ids, SEPARATOR)
    steps = []
    for example, value in given:
        (answer,) = example.responses
        places = ends.of(answer)
        ids = torch.tensor([[*example.prompt, *answer]])
        with torch.no_grad():
            hidden = loaded.model.model(ids).last_hidden_state[0]
            logits = loaded.model.score(hidden[len(example.prompt) + torch.tensor(places)]).squeeze(-1).numpy()
        assert value == pytest.approx(aggregated(logits, "product"), abs=1e-4)
        steps.append(len(places))
    assert max(steps) > 2
    means = [values["reward_model"] for values in metrics_of(stage._events.events).values()]
    assert all(0 < mean < 1 for mean in means)
    assert np.isfinite(means).all()
