"""Rows of rare scores weigh more, up to a limit, and the mean weight stays 1."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steerboard_contracts.methods.decision_transformer import DecisionTransformerConfig
from steerboard_contracts.prompts import Normaliser, ScoreScale
from steerboard_workers.alignment.methods.decision_transformer import DecisionTransformer
from steerboard_workers.alignment.score_balance import MOST, ScoreBalance

BY = Normaliser(mean=0.0, sd=1.0, n=100, reward_source="reward")


def test_tenths_of_the_range_count_the_same_where_none_is_very_rare():
    scores = [-4.9] * 10 + [0.1] * 20 + [4.9] * 30
    balance = ScoreBalance.fit(scores, 5.0)
    sums = [sum(balance.of(score) for score in scores if score == edge) for edge in (-4.9, 0.1, 4.9)]
    assert sums == pytest.approx([20.0] * 3)


def test_a_rare_score_weighs_at_most_5_times_the_mean_of_others():
    scores = [-5.0] + [0.1] * 999
    balance = ScoreBalance.fit(scores, 5.0)
    assert balance.of(-5.0) / balance.of(0.1) == pytest.approx(MOST / (1000 / 1998))


@given(st.lists(st.floats(-9, 9), min_size=1, max_size=50))
def test_the_mean_weight_is_1_and_no_row_weighs_nothing(scores):
    weights = [ScoreBalance.fit(scores, 5.0).of(score) for score in scores]
    assert np.mean(weights) == pytest.approx(1.0)
    assert min(weights) > 0


def selected(rows, **changes):
    given = {"run": "train", "method": "decision_transformer", "score_scale": "linear", **changes}
    method = DecisionTransformer(DecisionTransformerConfig.model_validate(given))
    method.select_rewarded(rows, [row["reward"] for row in rows], BY)
    return method


class Group:
    """The fields of a rendered group that an example reads."""

    prompt_ids, sequences, prompt = (1,), (), None


@pytest.mark.parametrize("balanced", [False, True])
def test_only_training_rows_are_weighed_and_only_where_asked_for(balanced, monkeypatch):
    from steerboard_workers.alignment.methods import decision_transformer as module

    monkeypatch.setattr(module.Example, "of", lambda number, group, weight=1.0: weight)
    rewards = [0.0] * 8 + [1.0, 1.0]
    rows = [{"reward": reward, "split": "train", "row": place} for place, reward in enumerate(rewards)]
    rows.append({"reward": 1.0, "split": "held_out", "row": 10})
    method = selected(rows, balance_scores=balanced)
    weights = [method.example(row["row"], row, Group()) for row in rows]
    assert weights[-1] == 1.0
    assert (weights[8] > 2 * weights[0]) is balanced
    assert np.mean(weights[:-1]) == pytest.approx(1.0)


def test_a_linear_scale_stretches_rewards_over_the_range_and_extremes_do_not_squeeze_it():
    rewards = [float(number) for number in range(101)]
    scale = ScoreScale.fit("linear", [*rewards, 1e6], BY)
    assert [scale.score(reward) for reward in (1.0, 50.0, 100.0)] == pytest.approx([-5.0, -0.0505, 5.0], abs=0.11)
    assert scale.score(-1e9) == -5.0
    assert scale.score(1e6) == 5.0
    assert scale.reward(scale.score(30.0)) == pytest.approx(30.0)
    assert ScoreScale.fit("linear", [1.0, 1.0, 2.0], BY).score(2.0) == 5.0
