"""Votes among several answers: what their pairs are worth, and that two-sided ones are what they always were."""

from __future__ import annotations

import math
import random
from itertools import combinations

import pytest

from steerboard_statistics.benchmarks.arena import leaderboard, win_matrix
from steerboard_statistics.benchmarks.battles import PairedComparison

LOG = 400 / math.log(10)


def vote(sides: str, best: str | None, battle: str | None) -> list[PairedComparison]:
    """The pairs of a vote for one of the sides, or of a tie."""
    return [
        PairedComparison(a, b, 0.5 if best is None else float(a == best), None, battle)
        for a, b in combinations(sides, 2)
        if best is None or best in (a, b)
    ]


def chosen(counts: dict[str, int], name: str) -> list[PairedComparison]:
    sides = "".join(counts)
    return [
        pair
        for best, votes in counts.items()
        for number in range(votes)
        for pair in vote(sides, best, f"{name}-{best}-{number}")
    ]


def test_choices_in_proportion_to_strengths_give_these_strengths() -> None:
    """Strengths of 1, 2, 3 and 6, no matter which others are among the sides."""
    pairs = [
        *chosen({"k": 10, "l": 20, "m": 30, "n": 60}, "four"),
        *chosen({"k": 10, "m": 30, "n": 60}, "three"),
        *chosen({"l": 20, "n": 60}, "two"),
    ]
    board = leaderboard(pairs, draws=0)
    ratings = {rating.model: rating.rating for rating in board.ratings}
    for name, strength in (("l", 2), ("m", 3), ("n", 6)):
        assert ratings[name] - ratings["k"] == pytest.approx(LOG * math.log(strength), abs=0.01)
    best = board.ratings[0]
    assert (best.model, best.n, best.wins, best.ties, best.losses) == ("n", 300, 180, 0, 120)
    assert win_matrix(pairs)["n"]["k"] == pytest.approx(6 / 7)


def test_intervals_of_choices_among_four_are_those_of_as_many_votes_and_not_of_as_many_pairs() -> None:
    """A log strength from n equal choices among k has the variance (k - 1) / n, by Fisher's information."""
    pairs = chosen(dict.fromkeys("klmn", 100), "four")
    width = 2 * 1.96 * LOG * math.sqrt(3 / 400)
    for rating in leaderboard(pairs).ratings:
        assert (rating.high or 0) - (rating.low or 0) == pytest.approx(width, rel=0.1)


def test_the_pairs_of_a_vote_share_the_weight_of_one() -> None:
    pairs = [*vote("klmn", "k", "four"), *vote("lk", "l", "two")]
    # A third of a win against a whole one.
    assert win_matrix(pairs)["k"]["l"] == pytest.approx(1 / 4)
    board = leaderboard(pairs, draws=0)
    assert {rating.model for rating in board.ratings} == {"k", "l"}
    assert board.ratings[0].rating - board.ratings[1].rating == pytest.approx(LOG * math.log(3), abs=0.01)


def test_a_tie_of_four_is_one_vote() -> None:
    pairs = [*chosen(dict.fromkeys("klmn", 5), "four"), *vote("klmn", None, "tie")]
    for rating in leaderboard(pairs, draws=0).ratings:
        assert (rating.rating, rating.elo) == (pytest.approx(1000), pytest.approx(1000, abs=8))
        assert (rating.n, rating.wins, rating.ties, rating.losses) == (21, 5, 1, 15)
    once = {
        rating.model: rating.elo for rating in leaderboard(vote("kl", "k", "a") + vote("kl", "l", "b"), draws=0).ratings
    }
    assert once["k"] + once["l"] == pytest.approx(2000)


def two_sided(*, ids: bool) -> list[PairedComparison]:
    draw = random.Random(5)
    pairs = []
    for number in range(200):
        a, b = draw.sample("klmn", 2)
        style = tuple({"length": float(draw.randint(5, 90)), "bold": float(draw.randint(0, 3))} for _ in range(2))
        value = draw.choice([1.0, 0.0, 0.5]) if draw.random() < 0.6 else float(a < b)
        pairs.append(PairedComparison(a, b, value, (style[0], style[1]), str(number) if ids else None))
    return pairs


@pytest.mark.parametrize("styled", [False, True])
def test_battles_of_two_are_rated_as_before_there_were_more(styled: bool) -> None:
    """The ratings of the release before it, with and without the ids of the battles. Intervals of styled ones are of
    other draws since the rows are drawn in an order of their own."""
    board = leaderboard(two_sided(ids=True), styled=styled)
    assert board == leaderboard(two_sided(ids=False), styled=styled)
    assert [
        (
            rating.model,
            *(round(value or 0.0, 6) for value in (rating.rating, rating.low, rating.high, rating.elo)),
            rating.n,
        )
        for rating in board.ratings
    ] == GOLDEN[styled]


GOLDEN: dict[bool, list[tuple[object, ...]]] = {
    False: [
        ("k", 1121.425817, 1065.270022, 1183.944668, 1055.645474, 91),
        ("l", 997.522926, 950.619228, 1045.78114, 1001.766366, 110),
        ("m", 995.99266, 946.71046, 1039.458879, 1001.079935, 98),
        ("n", 885.058597, 833.504465, 931.640726, 941.508225, 101),
    ],
    True: [
        ("k", 1123.937888, 1070.857822, 1190.380214, 1055.645474, 91),
        ("l", 1000.117893, 956.281623, 1044.265267, 1001.766366, 110),
        ("m", 998.912016, 947.647263, 1045.605307, 1001.079935, 98),
        ("n", 877.032203, 821.40598, 923.740361, 941.508225, 101),
    ],
}
