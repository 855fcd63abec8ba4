"""Rewards of answers become the batches of online methods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from online_rewards import Given, answers_of, config_of

from steerboard_workers.alignment.examples import Example
from steerboard_workers.alignment.methods import training_of
from steerboard_workers.alignment.online.objective import (
    ADVANTAGES,
    Turn,
)
from steerboard_workers.alignment.online.rows import RowTexts
from steerboard_workers.alignment.online.sampling import Sampled
from steerboard_workers.alignment.online.scoring import Scores
from steerboard_workers.alignment.online.source import PolicyGradientSource
from steerboard_workers.alignment.rollouts import Rollout, SourceContext
from steerboard_workers.phases import Phases


class Sampler:
    """Writes the answers "0", "1", ... to each prompt, whose first id is theirs alone; only the first one ends."""

    def __init__(self) -> None:
        self.steps: list[int] = []

    def sample(self, step, prompts, *, answers=1, temperature=1.0, max_new_tokens=None):
        self.steps.append(step)
        log_probs = np.full(3, -1.0, np.float32)
        return [[Rollout(p.row, n, ids(step, n), log_probs, str(n), n == 0) for n in range(answers)] for p in prompts]


def ids(step: int, n: int) -> np.ndarray:
    return np.array([10 * step + n + 1, 2, 3], dtype=np.int32)


class Log(Given):
    def per_label(self, examples, model=None):
        return [[np.full(3, -1.0, np.float32)] for _ in examples]


class ById(Log):
    """Rewards that differ by prompt and answer, now and then equal."""

    def per_sequence(self, examples, model=None):
        return [np.array([e.row * int(e.responses[0][0]) % 5], dtype=np.float32) for e in examples]


def source_of(passes: Log, rows: int = 2, **changes) -> PolicyGradientSource:
    config = config_of(**{"batch": 2, "answers": 2, "max_new_tokens": 3, "kl_weight": 0, **changes})
    prompts = [Example(row, np.arange(2, dtype=np.int32), ()) for row in range(rows)]
    renderer = type("Renderer", (), {"max_length": 16})()
    context = SourceContext(prompts, [], renderer, Sampler(), Phases(), passes)
    method = training_of(config)
    return PolicyGradientSource(context, config, Turn(), RowTexts(), method.judge, method.tied)


def batch_of(rewards: list[float] | dict[str, list[float]], **changes):
    given = rewards if isinstance(rewards, dict) else {"reward": rewards}
    return source_of(Log(**given), **changes).batch(0)


def test_prompts_whose_answers_are_equal_are_left_out_on_request_and_always_counted():
    batch = batch_of([1, 1, 1, 3])
    assert (len(batch.examples), batch.metrics["equal_groups"]) == (4, 0.5)
    batch = batch_of([1, 1, 1, 3], drop_equal=True)
    assert (len(batch.examples), batch.metrics["equal_groups"]) == (2, 0.5)
    assert len({example.row for example in batch.examples}) == 1
    batch = batch_of([1, 1, 3, 3], drop_equal=True)
    assert (batch.examples, batch.metrics["equal_groups"], batch.skipped) == ([], 1.0, True)


def test_rewards_that_add_up_to_the_same_are_no_tie_where_each_is_normalised_apart():
    """One reward rises as the other one falls for the second prompt; each is equal for the first."""
    given = {"reward": [1, 1, 0, 2], "reward_2": [3, 3, 2, 0]}
    batch = batch_of(given, method="gdpo", drop_equal=True)
    assert (len(batch.examples), batch.metrics["equal_groups"]) == (2, 0.5)
    assert len({e.row for e in batch.examples}) == 1
    assert batch_of(given).metrics["equal_groups"] == 1
    # What differs only in a reward of weight 0 teaches nothing.
    ignored = {"reward": [1, 1, 2, 2], "reward_2": [0, 1, 0, 1], "reward_3": [3, 3, 3, 3]}
    assert batch_of(ignored, method="gdpo", reward_weights=[1, 0, 1]).metrics["equal_groups"] == 1


def test_refills_keep_prompts_whose_rewards_add_up_to_the_same_but_differ_where_each_is_normalised_apart():
    given = {"reward": [0, 2, 0, 2], "reward_2": [2, 0, 2, 0]}
    metrics = {method: batch_of(given, method=method, refill=2).metrics for method in ("gdpo", "rloo")}
    assert [(figures["refills"], figures["missing_groups"]) for figures in metrics.values()] == [(0, 0), (2, 2)]


def test_refills_find_ties_in_the_rewards_that_are_learned():
    """What the clip makes equal is a tie, and what a cut answer pays for is none."""
    clipped = batch_of([50, 60, 70, 80], refill=2, reward_clip=10).metrics
    assert (clipped["refills"], clipped["missing_groups"], clipped["equal_groups"]) == (2, 2, 1)
    cut = batch_of([1, 1, 1, 1], refill=2, cut_penalty=2).metrics
    assert (cut["refills"], cut["missing_groups"], cut["equal_groups"]) == (0, 0, 0)


def test_rewards_are_clipped_before_an_answer_that_was_cut_pays_for_it():
    batch = batch_of([50, 50, 0, 1], reward_clip=10, cut_penalty=2)
    advantages = sorted(float(e.token_values[ADVANTAGES][0][0]) for e in batch.examples)
    # (10, 10 - 2) and (0, 1 - 2), each less the other one.
    assert advantages == [-2, -1, 1, 2]


def test_rewards_are_normalised_then_clipped_and_the_length_is_paid_for_last():
    """Mean 10 and standard deviation 2; half of the penalty for the third token of four, all of it for the fourth."""
    shaping = {"normalise_rewards": True, "reward_clip": 1.2, "cut_penalty": 0.5}
    source = source_of(Log(), max_new_tokens=4, overlong_tokens=2, overlong_penalty=3, **shaping)
    source.restore(source.state() | {"moments": {"count": 5, "mean": 10.0, "squares": 16.0}})
    lengths = (1, 3, 4, 4)
    rollouts = [
        replace(answer, ids=np.arange(length, dtype=np.int32), finished=n != 2)
        for n, (answer, length) in enumerate(zip(answers_of(*"abcd"), lengths, strict=True))
    ]
    scores = Scores(np.array([12.0, 10, 20, 1]), {}, {})
    rewards, penalties = source.shaped(Sampled([], rollouts, [], scores))
    assert penalties.tolist() == [0, 1.5, 3.5, 3]
    assert rewards.tolist() == pytest.approx([1, -1.5, -2.3, -4.2], abs=1e-5)


def test_what_an_answer_pays_is_a_reward_of_its_own_among_several():
    batch = batch_of([1, 1, 1, 1], method="gdpo", cut_penalty=1)
    advantage_of = {int(e.responses[0][0]): float(e.token_values[ADVANTAGES][0][0]) for e in batch.examples}
    assert advantage_of[1] > 0 > advantage_of[2]


def test_refills_draw_answers_that_nobody_had():
    source = source_of(Log(reward=[1, 1, 1, 1]), refill=3)
    source.batch(0)
    assert source.context.sampler.steps == [0, 1, 2, 3]


def test_running_means_are_of_all_answers_that_were_drawn():
    source = source_of(Log(reward=[1, 1, 1, 3]), refill=3, normalise_rewards=True)
    assert len(source.batch(0).examples) == 4
    assert source.state()["moments"] == {"count": 8, "mean": 1.5, "squares": 6.0}


def test_a_source_that_is_restored_gives_what_the_saved_one_would_have_given():
    changes = {"rows": 6, "normalise_rewards": True, "refill": 2, "minibatches": 2}
    saved, restored = source_of(ById(reward=[]), **changes), source_of(ById(reward=[]), **changes)
    saved.batch(0)
    restored.restore(saved.state())
    for step in range(1, 6):
        one, other = saved.batch(step), restored.batch(step)
        assert one.metrics == other.metrics
        assert [e.row for e in one.examples] == [e.row for e in other.examples]
        for a, b in zip(one.examples, other.examples, strict=True):
            assert a.responses[0].tolist() == b.responses[0].tolist()
            assert a.token_values[ADVANTAGES][0].tolist() == b.token_values[ADVANTAGES][0].tolist()
