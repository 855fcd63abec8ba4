"""Rows about one thing that no time orders, and pairs in both orders."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from figures.figures_runner import annotation, figures, invalid, pair, single, write
from steerboard_contracts.errors import BadInput

Rows = list[dict[str, Any]]
LABELS = {
    "A>>B": ("model_a", 3),
    "A>B": ("model_a", 1),
    "A=B": ("tie", 1),
    "B>A": ("model_b", 1),
    "B>>A": ("model_b", 3),
}
MIRRORED = {"model_a": "model_b", "model_b": "model_a", "tie": "tie"}


def arena_hard() -> tuple[Rows, Rows]:
    """(games, the battle file that Arena-Hard's own script makes of them): a strong verdict is three equal rows, no row
    has a time, and both orders of a question have one id and one order of the models."""
    draw = random.Random(2)
    games: Rows = []
    battles: Rows = []
    for question in range(300):
        first, second = (draw.choices(list(LABELS), weights)[0] for weights in ([1, 2, 2, 5, 6], [6, 5, 2, 2, 1]))
        scores = [{"score": first}, {"score": second}]
        games.append({"question_id": f"q{question}", "model": "m", "baseline": "base", "games": scores})
        names = {"question_id": f"q{question}", "model_a": "base", "model_b": "m"}
        for label, turned in ((first, False), (second, True)):
            winner, times = LABELS[label]
            battles += [{**names, "winner": MIRRORED[winner] if turned else winner}] * times
    return games, battles


def test_a_battle_file_without_times_has_the_win_rate_of_its_games(tmp_path: Path) -> None:
    games, battles = arena_hard()
    oracle = figures(write(tmp_path / "games.jsonl", *games))["models"][0]
    computed = figures(write(tmp_path / "battles.jsonl", *battles))
    assert (computed["n"], computed["superseded"]) == (len(battles), 0)
    assert 100 * computed["matrix"]["m"]["base"] == pytest.approx(oracle["win_rate"])
    ratings = {model["model"]: model["rating"] for model in computed["models"]}
    assert ratings["m"] - ratings["base"] == pytest.approx(oracle["rating"] - 1000, abs=0.01)
    (warning,) = computed["warnings"]
    assert f"{len(battles) - 300:,} of {len(battles):,} rows" in warning
    assert "--repeats" in warning
    once = figures(tmp_path / "battles.jsonl", "--repeats", "last")
    assert (once["n"], once["superseded"]) == (300, len(battles) - 300)


@pytest.mark.parametrize("named", [{}, {"question_id": 1}])
def test_equal_rows_of_one_second_are_as_many_votes(tmp_path: Path, named: dict[str, int]) -> None:
    row = {"model_a": "a", "model_b": "b", "tstamp": 1700000000, **named}
    rows = [{**row, "winner": "model_a"}] * 3 + [{**row, "winner": "model_b"}]
    computed = figures(write(tmp_path / "a.jsonl", *rows))
    assert (computed["n"], computed["matrix"]["a"]["b"]) == (4, 0.75)


def test_an_older_battle_on_a_question_is_superseded_unless_all_count(tmp_path: Path) -> None:
    row = {"question_id": 1, "model_a": "a", "model_b": "b"}
    rows = [{**row, "winner": "model_b", "tstamp": 9}, {**row, "winner": "model_a", "tstamp": 5}]
    path = write(tmp_path / "a.jsonl", *rows)
    assert [figures(path)["matrix"]["a"]["b"], figures(path, "--repeats", "all")["matrix"]["a"]["b"]] == [0, 0.5]


def test_both_orders_of_a_battle_are_averaged(tmp_path: Path) -> None:
    rows = [
        {"question_id": 1, "model_a": "a", "model_b": "b", "winner": "model_a", "tstamp": 1},
        {"question_id": 1, "model_a": "b", "model_b": "a", "winner": "model_a", "tstamp": 2},
    ]
    assert figures(write(tmp_path / "a.jsonl", *rows))["matrix"]["a"]["b"] == 0.5


def _games(score: str) -> Rows:
    games = [{"score": score}, {"score": "A>B"}]
    return [{"question_id": n, "model": "m", "baseline": "base", "games": games} for n in range(40)]


def _pandalm(said: int) -> Rows:
    return [{"idx": n, "x_result": said, **{f"annotator{k}": 1 for k in (1, 2, 3)}} for n in range(40)]


def _llmbar(said: int) -> Rows:
    verdict = {"label": 1, "winner_order12": said, "winner_order21": 1}
    return [{"dataset": "Natural", "evaluator": "e", "idx": n, **verdict} for n in range(40)]


def _rewards(chosen: float) -> Rows:
    return [{"subset": "hep-go", "id": n, "chosen_reward": chosen, "rejected_reward": 0} for n in range(164)]


def _scores(first: float) -> Rows:
    return [{"subset": "Math", "id": n, "num_correct": 1, "scores": [first, 0, 0, 0]} for n in range(183)]


def _reviews(score: int) -> Rows:
    row = {"reviewer_id": "r", "score": [score, 5]}
    return [{"question_id": n, "answer1_id": f"x{n}", "answer2_id": f"y{n}", **row} for n in range(40)]


def _votes(winner: str) -> Rows:
    return [{"id": n, "model_a": "a", "model_b": "b", "winner": winner if n % 2 else "tie"} for n in range(40)]


CONTRADICTING = [
    ([single(n, 5) for n in range(40)], [single(n, 9) for n in range(40)]),
    ([annotation(n, 1.2) for n in range(40)], [annotation(n, 1.9) for n in range(40)]),
    ([pair(n, "model_1", "model_1") for n in range(40)], [pair(n, "model_2", "model_2") for n in range(40)]),
    *((make(one), make(other)) for make, one, other in ((_games, "A>B", "B>A"), (_reviews, 3, 9))),
    *((make(1), make(2)) for make in (_pandalm, _llmbar)),
    *((make(1), make(-1)) for make in (_rewards, _scores)),
    (_votes("model_a"), _votes("model_b")),
]


@pytest.mark.parametrize(("rows", "others"), CONTRADICTING)
def test_contradicting_rows_in_no_order_are_invalid_until_an_option_decides(
    tmp_path: Path, rows: Rows, others: Rows
) -> None:
    path = write(tmp_path / "a.jsonl", *rows, *others)
    assert "--repeats first or last decides" in str(invalid(path)["reasons"])

    def told(*arguments: object) -> dict[str, Any]:
        computed = figures(*arguments)
        return {key: value for key, value in _without_counts(computed).items() if key not in ("rows", "warnings")}

    for choice, wanted in (("first", rows), ("last", others)):
        alone = told(write(tmp_path / "b.jsonl", *wanted))
        assert told(path, "--repeats", choice) == alone
    assert told(write(tmp_path / "c.jsonl", *rows, *rows)) == told(write(tmp_path / "d.jsonl", *rows))


def _without_counts(value: Any) -> Any:
    """The figures without those that count rows instead of what is in them."""
    if isinstance(value, dict):
        counts = ("superseded", "verdicts", "judges", "file")
        return {key: _without_counts(value) for key, value in value.items() if key not in counts}
    return [_without_counts(part) for part in value] if isinstance(value, list) else value


def test_only_battles_may_count_all_rows(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--repeats all applies only to battle files"):
        figures(write(tmp_path / "a.jsonl", single(1, 5)), "--repeats", "all")


def test_both_orders_of_a_preference_are_averaged(tmp_path: Path) -> None:
    rows = [annotation(n, 1.9) for n in range(40)]
    sides = {"generator_1": "mine", "generator_2": "base"}
    turned = [
        {**row, **sides, "output_1": row["output_2"], "output_2": row["output_1"], "preference": 1.5} for row in rows
    ]
    for order in ([*rows, *turned], [*rows[:1], *turned, *rows[1:]]):
        computed = figures(write(tmp_path / "a.jsonl", *order))
        (model,) = computed["models"]
        assert (model["win_rate"], model["n"], model["superseded"]) == (pytest.approx(70), 40, 0)


def test_both_orders_of_a_review_are_averaged(tmp_path: Path) -> None:
    rows = _reviews(9)
    turned = [
        {**row, "answer1_id": row["answer2_id"], "answer2_id": row["answer1_id"], "score": [7, 5]} for row in rows
    ]
    (file,) = figures(write(tmp_path / "a.jsonl", *rows, *turned))["files"]
    assert (file["total_1"], file["total_2"], file["wins_1"], file["n"]) == (40 * 7, 40 * 6, 40, 40)
    assert (file["flip_rate"], file["superseded"]) == (1, 0)
