"""Tiny models and the synthetic data, made once; each test gets a pipeline of its own on top of them."""

from __future__ import annotations

import json

import pytest
from hand_pipeline import HandPipeline

from steerboard_contracts.stage.events import Succeeded
from steerboard_workers.synthetic import write_demo_data

TRAIN = {"run": "train", "batch": 16, "max_steps": 12, "lr": 3e-3, "checkpoint_every": 0}


@pytest.fixture(scope="session")
def foundation(tmp_path_factory):
    """Datasets, a base, an SFT model, two reward models and a decision-transformer policy, all barely trained."""
    folder = tmp_path_factory.mktemp("foundation")
    pipeline = HandPipeline(folder, here=True, threads=None)
    write_demo_data(folder / "data")
    for kind, count in (("instructions", 300), ("preferences", 200), ("prompts", 120)):
        lines = (folder / "data" / f"{kind}.jsonl").read_text().splitlines()[:count]
        pipeline.dataset(f"${kind}", kind, [json.loads(line) for line in lines])
    base = {"run": "base", "source": "random:tiny-llama", "vocabulary": 700, "hidden": 32, "layers": 1, "heads": 2}
    stages = (
        ("base", {**base, "max_length": 192}, {"data.0": "$instructions"}),
        ("sft", {**TRAIN, "method": "sft"}, {"model": "base", "data": "$instructions"}),
        ("reward", {**TRAIN, "method": "reward_model", "half": "a"}, {"model": "sft", "data": "$preferences"}),
        ("independent", {**TRAIN, "method": "reward_model", "half": "b"}, {"model": "sft", "data": "$preferences"}),
        ("labelled", {"run": "score"}, {"data": "$instructions", "reward": "reward"}),
        ("dt", {**TRAIN, "method": "decision_transformer"}, {"model": "sft", "data": "labelled"}),
    )
    for name, config, inputs in stages:
        result = pipeline.run(name, config, inputs)
        assert isinstance(result.last, Succeeded), result.last
    return pipeline


@pytest.fixture
def pipeline(foundation, tmp_path):
    """The foundation's things, in a folder of this test's own."""
    return HandPipeline(tmp_path, here=True, threads=None, things=dict(foundation.things))
