"""What an online run keeps of its sampled answers: the figures that the run learned from, no matter what kills it."""

from __future__ import annotations

import random

import numpy as np
import pytest
from running import forked, ran, recorded

from steerboard_workers.stages.runtime import Stage

CONFIG = {
    "run": "train",
    "method": "rloo",
    "rules": [{"kind": "regex", "pattern": "s"}, {"kind": "regex", "pattern": "a", "weight": 0.5}],
    "batch": 4,
    "answers": 3,
    "epochs": 6,
    "max_length": 96,
    "max_new_tokens": 6,
    "checkpoint_seconds": 0,
    "checkpoint_every": 0,
    "lr": 1e-2,
    "max_steps": 4,
    "evaluate_rows": 4,
}


@pytest.fixture(scope="module")
def started(make_stage, base_model):
    def start(**config) -> Stage:
        return make_stage({**CONFIG, **config}, model=base_model)

    return start


def test_groups_hold_the_figures_that_the_step_learned_from(started):
    stage = started(cut_penalty=0.25)
    metrics = ran(stage)
    groups = recorded(stage, "sampled")
    assert [(sampled.step, sampled.group.place) for sampled in groups] == [
        (step, place) for step in range(1, 5) for place in range(4)
    ]
    for step, values in metrics.items():
        answers = [answer for sampled in groups if sampled.step == step for answer in sampled.group.answers]
        assert np.mean([answer.kl for answer in answers]) == pytest.approx(values["kl"], abs=1e-6)
        assert np.mean([answer.tokens for answer in answers]) == pytest.approx(values["length"])
        assert np.mean([answer.finished for answer in answers]) == pytest.approx(values["ended"])
        for sampled in answers:
            assert sampled.reward == sampled.sources["regex"] + 0.5 * sampled.sources["regex_2"] - 0.25 * (
                not sampled.finished
            )
            assert len(sampled.texts) == len(sampled.log_ratios) == sampled.tokens
            assert sum(sampled.log_ratios) == pytest.approx(sampled.kl, abs=1e-3)
    assert metrics[4]["kl"] > 0.01
    for event in groups:
        rewards = [answer.reward for answer in event.group.answers]
        assert rewards == sorted(rewards, reverse=True)
        assert event.group.tied == (len(set(rewards)) == 1)
        learned = [answer.reward - 0.05 * answer.kl for answer in event.group.answers]
        expected = 1.5 * (np.array(learned) - np.mean(learned))  # k / (k - 1) of the reward less the KL
        assert [answer.advantage for answer in event.group.answers] == pytest.approx(expected.tolist(), abs=1e-6)


def test_groups_and_steps_are_bounded_and_of_several_updates_only_the_first_samples(started):
    stage = started(inspect_groups=2, inspect_group_steps=2, updates=2, max_steps=8)
    ran(stage)
    kept = [(sampled.step, sampled.group.place) for sampled in recorded(stage, "sampled")]
    assert kept == [(1, 0), (1, 1), (5, 0), (5, 1)]
    none = started(inspect_groups=0, max_steps=1)
    ran(none)
    assert recorded(none, "sampled") == []


@pytest.mark.long
def test_a_killed_run_tells_its_earlier_groups_again(started):
    config = {"checkpoint_every": 2, "max_steps": 5, "inspect_groups": 1}
    whole = [e for e in forked(started(**config), 1, None, random.Random(1)) if e.type == "sampled"]
    stage = started(**config)
    forked(stage, 1, 4, random.Random(2))
    again = [e for e in forked(stage, 2, None, random.Random(3)) if e.type == "sampled"]
    assert again == whole
    assert [event.step for event in again] == [1, 2, 3, 4, 5]
