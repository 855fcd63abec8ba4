"""Scoring by a process reward model: the aggregate of the model, or that of the run."""

from __future__ import annotations

import json
import shutil

import pytest

from steerboard_contracts.stage.events import Failed, Succeeded
from steerboard_contracts.stage.inputs import ModelInput

INPUTS = {"data": "$instructions", "reward": "steps"}


@pytest.fixture
def steps(pipeline, tmp_path):
    """A reward model that is read behind each sentence."""
    folder = tmp_path / "model"
    shutil.copytree(pipeline.things["reward"].path, folder)
    info = json.loads((folder / "steerboard.json").read_text())
    info["process"] = {"separator": " ", "aggregate": "min"}
    (folder / "steerboard.json").write_text(json.dumps(info))
    pipeline.things["steps"] = ModelInput(name="steps", path=str(folder), content_hash="s")
    return pipeline


def values(result):
    assert isinstance(result.last, Succeeded), result.last
    lines = (result.directory / "outputs" / "rewards.jsonl").read_text().splitlines()
    return [json.loads(line)["value"] for line in lines]


def test_the_reward_is_the_models_aggregate_or_the_runs(steps):
    score = {"run": "score", "batch_tokens": 700}
    own = values(steps.run("own", score, INPUTS))
    by = {
        how: values(steps.run(how, {**score, "aggregate": how}, INPUTS)) for how in ("min", "product", "last", "mean")
    }
    assert own == by["min"]
    for low, product, last, mean in zip(*(by[how] for how in ("min", "product", "last", "mean")), strict=True):
        assert 0 < product <= low <= min(last, mean) < 1
    assert by["last"] != by["mean"] != by["min"] != by["product"]


def test_rows_scored_alone_have_the_same_rewards(steps):
    rows = steps.rows("$instructions")[:6]
    steps.dataset("$few", "instructions", [{k: row[k] for k in ("prompt", "response")} for row in rows])
    whole = values(steps.run("whole", {"run": "score"}, INPUTS))[:6]
    alone = values(steps.run("alone", {"run": "score", "batch_tokens": 1}, {**INPUTS, "data": "$few"}))
    assert alone == pytest.approx(whole, abs=1e-5)


def test_a_model_without_steps_has_none_to_aggregate(steps):
    result = steps.run("scored", {"run": "score", "aggregate": "mean"}, {**INPUTS, "reward": "reward"})
    assert isinstance(result.last, Failed)
    assert result.last.code == "wrong_role"
    assert "no process reward model" in result.last.detail
