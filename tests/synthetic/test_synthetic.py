"""The synthetic data is repeatable and rich, and its known quality cannot be fooled by cheap tricks."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys

import pytest

from steerboard_contracts.samples import validate_sample
from steerboard_workers.synthetic import quality, write_demo_data
from steerboard_workers.synthetic.answers import KINDS, write_answer, write_off_topic
from steerboard_workers.synthetic.topics import QUESTIONS, SITUATIONS, TOPICS, prompt_text

KINDS_OF_DATA = ("instructions", "preferences", "prompts", "unpaired")
PROMPT = "How can I grow tomatoes on a small budget?"
FULL = (
    "Happy to help! Here are some steps for tomatoes: 1. Pick a spot with six hours of sun. 2. Mix compost into the "
    "soil before planting. 3. Plant the seedlings deep and far apart. 4. Tie the stems to a tall stake. 5. Water the "
    "roots early and keep the leaves dry. On a small budget, borrow what you can. Let me know how it goes!"
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("synthetic")
    write_demo_data(folder)
    return folder


def rows(folder, name):
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def test_the_command_writes_the_same_bytes_each_time(data, tmp_path):
    command = [sys.executable, "-m", "steerboard_workers.synthetic", str(tmp_path)]
    counts = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    for name in KINDS_OF_DATA:
        ours, theirs = ((folder / f"{name}.jsonl").read_bytes() for folder in (data, tmp_path))
        assert hashlib.sha256(ours).hexdigest() == hashlib.sha256(theirs).hexdigest()
        assert counts[name] == len(theirs.splitlines())
    assert "Synthetic" in (tmp_path / "README.txt").read_text()


@pytest.mark.parametrize("name", KINDS_OF_DATA)
def test_every_row_is_a_valid_sample(data, name):
    for line, row in enumerate(rows(data, name), start=1):
        validate_sample(name, row, line)


def test_prompts_are_distinct_and_cover_every_topic_and_form(data):
    prompts = [row["prompt"] for row in rows(data, "prompts")]
    assert len(set(prompts)) == len(prompts)
    assert len(TOPICS) >= 10
    assert len(QUESTIONS) >= 8
    assert all(sum(topic.verb in p for p in prompts) > 20 for topic in TOPICS)


def test_chosen_is_better_but_for_a_little_noise(data):
    pairs = rows(data, "preferences")
    right = [quality(p["prompt"], p["chosen"]) > quality(p["prompt"], p["rejected"]) for p in pairs]
    assert 0.95 < sum(right) / len(right) < 0.99


def test_half_of_the_thumbs_are_up_and_for_the_better_answers(data):
    thumbs = rows(data, "unpaired")
    up = [row for row in thumbs if row["desirable"]]
    assert 0.45 < len(up) / len(thumbs) < 0.55
    right = [(quality(row["prompt"], row["response"]) >= 0.4) == row["desirable"] for row in thumbs]
    assert 0.95 < sum(right) / len(right) < 0.99


def test_kinds_of_answers_are_ranked_by_quality():
    random_ = random.Random(0)
    means = []
    for kind in KINDS:
        values = []
        for _ in range(100):
            topic, situation = random_.choice(TOPICS), random_.choice(SITUATIONS)
            prompt = prompt_text(topic, situation, random_.choice(QUESTIONS))
            values.append(quality(prompt, write_answer(kind, topic, situation, random_)))
        means.append(sum(values) / len(values))
    assert means == sorted(means, reverse=True)
    assert means[0] > 0.9
    assert means[-1] == 0


def test_a_full_answer_is_best_and_each_fault_costs():
    assert quality(PROMPT, FULL) == pytest.approx(1.0)
    dry = FULL.removeprefix("Happy to help! ").removesuffix(" Let me know how it goes!")
    assert quality(PROMPT, dry) < 0.8
    assert quality(PROMPT, FULL.replace("On a small budget, borrow what you can. ", "")) < 1.0
    assert quality(PROMPT, FULL.replace(" 5. Water the roots early and keep the leaves dry.", "")) < 1.0


def test_fluent_answers_to_another_question_score_zero():
    random_ = random.Random(1)
    for _ in range(200):
        topic, situation = random_.choice(TOPICS), random_.choice(SITUATIONS)
        prompt = prompt_text(topic, situation, random_.choice(QUESTIONS))
        for form in ("friendly", "dry", "brief", "short"):
            assert quality(prompt, write_off_topic(form, topic, situation, random_)) < 0.05


@pytest.mark.parametrize(
    ("trick", "most"),
    [
        ("Pick a spot with six hours of sun. " * 8, 0.02),
        ("tomatoes " * 50, 0.1),
        ("", 0.0),
        ("Happy to help! " * 3 + "Let me know how it goes!", 0.1),
        (" ".join(step for topic in TOPICS for step in topic.steps), 0.05),
        ("the of and in a", 0.1),
        (FULL + " " + FULL, 0.5),
    ],
)
def test_tricks_do_not_pay(trick, most):
    assert quality(PROMPT, trick) <= most


def test_small_deviations_in_wording_cost_nothing():
    changed = FULL.replace("six hours of sun", "hours of sun").replace("1. Pick", "1) Pick").upper()
    assert quality(PROMPT, changed) == pytest.approx(1.0)


def test_a_foreign_prompt_is_refused():
    with pytest.raises(ValueError, match="synthetic"):
        quality("What is the capital of France?", "Paris.")
