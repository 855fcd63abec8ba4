"""Grading: a program that knows how good an answer is gives every row a reward."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from hand_pipeline import HandPipeline

from steerboard_contracts.stage.events import Failed, Succeeded
from steerboard_workers.synthetic import quality
from steerboard_workers.synthetic.topics import TOPICS

ANSWERS = ["I love this wonderful hotel!", "The room has a door.", "A terrible, disgusting and sad place.", ""]


@pytest.fixture
def stages(tmp_path):
    pipeline = HandPipeline(tmp_path, here=True, threads=None)
    rows = [{"prompt": "How was it?", "response": text, "source": "generated"} for text in ANSWERS]
    pipeline.dataset("answers", "instructions", rows)
    return pipeline


def grade(pipeline, name="graded", data="answers", **config):
    return pipeline.run(name, {"run": "grade", **config}, {"data": data})


def values(result):
    lines = (result.directory / "outputs" / "rewards.jsonl").read_text().splitlines()
    return [row["value"] for row in map(json.loads, lines)]


def test_sentiment_is_how_positive_the_answer_is_from_minus_5_to_5(stages):
    result = grade(stages, quality="sentiment")
    assert isinstance(result.last, Succeeded)
    good, plain, bad, empty = values(result)
    assert 3 < good <= 5
    assert -5 <= bad < -3
    assert (plain, empty) == (0, 0)
    assert result.last.summary["reward_mean"] == pytest.approx(np.mean([good, plain, bad, empty]))


def test_noise_is_drawn_by_the_seed_with_its_standard_deviation(stages):
    rows = [
        {"prompt": f"{number}?", "response": ("Fine.", "Bad.")[number % 2], "source": "generated"}
        for number in range(2000)
    ]
    stages.dataset("many", "instructions", rows)
    exact = values(grade(stages, "exact", "many", quality="sentiment"))
    noisy = values(grade(stages, "noisy", "many", quality="sentiment", noise=1.5))
    errors = np.subtract(noisy, exact)
    # Four standard errors of a mean and of a standard deviation.
    assert errors.mean() == pytest.approx(0, abs=4 * 1.5 / 2000**0.5)
    assert errors.std() == pytest.approx(1.5, abs=4 * 1.5 / 4000**0.5)
    assert values(grade(stages, "again", "many", quality="sentiment", noise=1.5)) == noisy
    assert values(grade(stages, "other", "many", quality="sentiment", noise=1.5, seed=1)) != noisy


def test_answers_of_the_synthetic_data_get_their_known_quality_and_others_are_refused(stages):
    prompt, answer = f"How can I {TOPICS[0].verb}?", " ".join(TOPICS[0].steps)
    asked = [{"prompt": prompt, "response": text, "source": "generated"} for text in (answer, "No idea.")]
    stages.dataset("known", "instructions", asked)
    assert values(grade(stages, "known", "known", quality="synthetic")) == [quality(prompt, answer), 0.0]
    assert quality(prompt, answer) > 0
    failed = grade(stages, "others", quality="synthetic").last
    assert isinstance(failed, Failed)
    assert failed.code == "not_synthetic"


def test_a_worker_without_the_package_is_told_what_to_install(stages, monkeypatch):
    monkeypatch.setitem(sys.modules, "vaderSentiment.vaderSentiment", None)
    failed = grade(stages, quality="sentiment").last
    assert isinstance(failed, Failed)
    assert failed.code == "missing_package"
    assert "steerboard[sentiment]" in failed.hint
