"""Arena-Hard battles against closed forms and another logistic regression; the older single scores of arena-bench."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from steerboard_statistics.benchmarks import arena_hard
from steerboard_statistics.benchmarks.arena_hard import Battle
from steerboard_statistics.ranks import friedman, rank_scores


@pytest.mark.parametrize(
    ("label", "value"),
    [
        ("A>>B", (1.0, 3)),
        ("A>B", (1.0, 1)),
        ("A=B", (0.5, 1)),
        ("B=A", (0.5, 1)),
        ("B>A", (0.0, 1)),
        ("A<B", (0.0, 1)),
        ("B>>A", (0.0, 3)),
        ("A<<B", (0.0, 3)),
        ("B<<A", (1.0, 3)),
        ("B<A", (1.0, 1)),
        ("[[A>B]]", (1.0, 1)),
        ("A>C", None),
        ("", None),
        (None, None),
    ],
)
def test_labels(label: str | None, value: tuple[float, int] | None) -> None:
    assert arena_hard.verdict(label) == value


def test_against_one_baseline_a_win_rate_is_the_weighted_share() -> None:
    """Closed form: nothing but the battles of the two matters. 3 + 1 wins, 1/2 of a tie, 1 loss: 4.5 of 6."""
    battles = [Battle("m", "base", 1, 3), Battle("base", "m", 0), Battle("m", "base", 0.5), Battle("m", "base", 0)]
    model, base = arena_hard.win_rates(battles * 10, "base")
    assert model.win_rate == pytest.approx(75.0, abs=1e-6)
    assert model.rating - base.rating == pytest.approx(400 * np.log10(3), abs=1e-4)
    assert (base.win_rate, base.low, base.rating, model.n) == (50.0, None, 1000.0, 40)
    assert model.low is not None
    assert model.high is not None
    assert model.low < 75 < model.high


def test_several_models_against_an_unpenalised_logistic_regression() -> None:
    random = np.random.default_rng(3)
    names = ["a", "b", "c", "d"]
    strength = {"a": 0.0, "b": 0.5, "c": -0.4, "d": 1.0}
    battles = []
    for _ in range(600):
        one, other = random.choice(4, 2, replace=False)
        x, y = names[one], names[other]
        wins = random.random() < 1 / (1 + np.exp(strength[y] - strength[x]))
        value = 0.5 if random.random() < 0.1 else float(wins)
        battles.append(Battle(x, y, value, int(random.choice([1, 3]))))
    x_rows, y_rows, weights = [], [], []
    for battle in battles:
        row = np.zeros(4)
        row[names.index(battle.a)], row[names.index(battle.b)] = 1, -1
        for outcome, share in ((1, battle.value), (0, 1 - battle.value)):
            if share:
                x_rows.append(row)
                y_rows.append(outcome)
                weights.append(share * battle.weight)
    from sklearn.linear_model import LogisticRegression  # slow to import, and every process collects this

    model = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10, max_iter=1000)
    theirs = model.fit(x_rows, y_rows, sample_weight=weights).coef_[0]
    rates = {rate.model: rate for rate in arena_hard.win_rates(battles, "a", bootstraps=0)}
    for index, name in enumerate(names):
        assert rates[name].win_rate == pytest.approx(100 / (1 + np.exp(theirs[0] - theirs[index])), abs=1e-3)


def test_whoever_never_lost_or_never_won_has_no_finite_rating() -> None:
    """The likelihood of the others is what it is without them: 3 of 4 for `m`."""
    level = [Battle("m", "base", value) for value in (1, 1, 1, 0)] * 10
    ends = [Battle("best", "base", 1), Battle("base", "worst", 1), Battle("m", "worst", 1), Battle("best", "m", 1)]
    rates = {rate.model: rate for rate in arena_hard.win_rates([*level, *ends * 20], "base")}
    assert (rates["best"].win_rate, rates["best"].rating) == (100, None)
    assert (rates["worst"].win_rate, rates["worst"].rating) == (0, None)
    assert [rates[name].low for name in ("best", "worst")] == [None, None]
    assert rates["m"].win_rate == pytest.approx(75, abs=1e-6)
    alone = {rate.model: rate for rate in arena_hard.win_rates(level, "base")}
    assert rates["m"].rating == pytest.approx(alone["m"].rating, abs=1e-6)


def test_whom_neither_wins_nor_losses_join_to_the_baseline_is_left_out() -> None:
    """`best` may be as far above `x` as anything, so `x` may be above or below the baseline."""
    battles = [Battle("best", "base", 1), Battle("best", "x", 1)] * 20
    assert {rate.model for rate in arena_hard.win_rates(battles, "base")} == {"base", "best"}


def test_ties_alone_have_no_interval() -> None:
    ties = [Battle("m", "base", 0.5), Battle("base", "m", 0.5), Battle("x", "m", 0.5)] * 30
    for rate in arena_hard.win_rates(ties, "base"):
        assert (rate.win_rate, rate.rating, rate.low, rate.high) == (pytest.approx(50), pytest.approx(1000), None, None)


def test_models_that_never_met_the_baseline_are_left_out() -> None:
    battles = [Battle("m", "base", 1), Battle("m", "base", 0), Battle("x", "y", 1)]
    assert {rate.model for rate in arena_hard.win_rates(battles, "base")} == {"m", "base"}
    with pytest.raises(ValueError, match="no battle"):
        arena_hard.win_rates(battles, "nobody")


def test_a_battle_of_a_model_with_itself_counts_for_nothing() -> None:
    battles = [Battle("m", "base", 1), Battle("m", "base", 0)]
    assert arena_hard.win_rates([*battles, Battle("m", "m", 1)], "base") == arena_hard.win_rates(battles, "base")


def test_draws_without_a_battle_of_a_model_say_nothing_of_it() -> None:
    """A third of the draws have no battle where it has one among 60: they are not evidence for a win rate of 50."""
    battles = [Battle("m", "base", value % 2) for value in range(60)]
    rare = next(
        rate for rate in arena_hard.win_rates([*battles, Battle("rare", "base", 0)], "base") if rate.model == "rare"
    )
    assert (rare.n, rare.win_rate, rare.high) == (1, 0, None)


def test_the_same_battles_give_the_same_interval() -> None:
    battles = [Battle("m", "base", value) for value in (1, 0, 1, 1, 0.5, 0, 1, 1)]
    assert arena_hard.win_rates(battles, "base") == arena_hard.win_rates(battles, "base")
    assert arena_hard.win_rates(battles, "base") == arena_hard.win_rates(battles[::-1], "base")


@pytest.mark.parametrize("weight", [1, 3])
def test_neither_another_game_nor_a_strong_verdict_is_evidence_of_another_question(weight: int) -> None:
    values = [1, 0, 1, 1, 0.5, 0, 1, 1, 0, 1] * 3
    once, again = (
        arena_hard.win_rates(
            [Battle("m", "base", value, weight, question) for question, value in enumerate(values)] * games, "base"
        )[0]
        for games, weight in ((1, 1), (2, weight))
    )
    assert once.low is not None
    assert (again.low, again.high) == (pytest.approx(once.low), pytest.approx(once.high))


def test_fewer_than_eight_questions_have_no_interval() -> None:
    games = [Battle("m", "base", value, 1, question) for question in range(8) for value in (1, question % 2)]
    assert [arena_hard.win_rates(games[: 2 * n], "base")[0].low is None for n in (7, 8)] == [True, False]


@pytest.fixture(scope="module")
def arena_bench(published: Path) -> dict[str, dict[str, float]]:
    """{model: {question: score, NaN where the judgment was not parsed}} of five models on the same 300 questions."""
    scores: dict[str, dict[str, float]] = {}
    for path in sorted((published / "arena_hard" / "arena-bench-v1_single").glob("*.gz")):
        with gzip.open(path, "rt") as file:
            for row in map(json.loads, file):
                score = float("nan") if row["score"] is None else float(row["score"])
                scores.setdefault(row["model"], {})[row["question_id"]] = score
    return scores


def test_rank_scores_and_friedman_of_arena_bench(arena_bench: dict[str, dict[str, float]]) -> None:
    """One judge of single answers, 18 of 1,500 not parsed: 285 questions have all five models."""
    questions = sorted(set.intersection(*(set(mine) for mine in arena_bench.values())))
    scores = np.array([[mine[question] for mine in arena_bench.values()] for question in questions])
    assert scores.shape == (300, 5)
    assert int(np.isnan(scores).sum()) == 18
    complete = scores[np.isfinite(scores).all(axis=1)]
    ranked = rank_scores(-complete).mean(axis=0)
    assert dict(zip(arena_bench, ranked.round(4), strict=True)) == {
        "Starling-LM-7B-alpha": 2.8649,
        "claude-2.1": 3.3,
        "gpt-4-1106-preview": 4.5807,
        "openchat_3.5": 2.5702,
        "palm-2-chat-bison-001": 1.6842,
    }
    ours, theirs = friedman(scores), stats.friedmanchisquare(*complete.T)
    assert ours is not None
    assert (ours.items, ours.entrants) == (285, 5)
    assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-9) == pytest.approx(586.157160, abs=1e-5)
    assert ours.p == pytest.approx(theirs.pvalue, rel=1e-6)
