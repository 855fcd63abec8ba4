from __future__ import annotations

import numpy as np
import pytest

from steerboard_statistics.pairing import difference_variances, joining_chances, pair_chances


def test_before_any_vote_all_pairs_are_as_likely() -> None:
    chances = pair_chances(np.zeros((4, 4)))
    assert chances[np.triu_indices(4, k=1)] == pytest.approx(np.full(6, 1 / 6))
    assert chances.sum() == pytest.approx(1)


def test_of_two_the_variance_is_that_of_a_logit() -> None:
    """1 / (n p (1 - p)), with one tie added: 7 of 10 and a tie are 7.5 of 11."""
    wins = np.array([[0.0, 7.0], [3.0, 0.0]])
    p = 7.5 / 11
    assert difference_variances(wins)[0, 1] == pytest.approx(1 / (11 * p * (1 - p)), rel=1e-6)


def test_the_pair_with_the_fewest_votes_is_drawn_most() -> None:
    wins = np.array([[0.0, 20.0, 20.0], [20.0, 0.0, 1.0], [20.0, 1.0, 0.0]])
    chances = pair_chances(wins)
    assert chances[1, 2] > chances[0, 1]
    assert chances[0, 1] == pytest.approx(chances[0, 2])


def test_a_pair_that_never_met_is_known_by_way_of_others() -> None:
    """0 and 2 met 1 often, and 3 met no one: the difference of 0 and 2 is far more certain than any of 3."""
    wins = np.zeros((4, 4))
    wins[0, 1] = wins[1, 0] = wins[1, 2] = wins[2, 1] = 50
    variances = difference_variances(wins)
    assert variances[0, 2] < variances[[0, 1, 2], 3].min() / 5


def test_one_that_always_wins_has_finite_chances() -> None:
    wins = np.array([[0.0, 200.0], [0.0, 0.0]])
    assert np.isfinite(pair_chances(wins)).all()


def test_the_one_with_the_fewest_votes_joins_most_and_nobody_joins_twice() -> None:
    wins = np.full((4, 4), 20.0)
    wins[3, :] = wins[:, 3] = 1
    joining = joining_chances(pair_chances(wins), [0, 1])
    assert joining[[0, 1]].tolist() == [0, 0]
    assert joining.sum() == pytest.approx(1)
    assert joining[3] > 3 * joining[2]
