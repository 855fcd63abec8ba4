"""Formats of `steerboard figures` besides judgments of answers: judge benchmarks, arena battles, leaderboards; and what
people see of MT-Bench."""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from figures.figures_runner import figures, invalid, run, single, write
from steerboard.cli.output.figures_table import print_figures
from steerboard_contracts.errors import BadInput


def test_llmbar_equals_the_published_statistics(published: Path) -> None:
    computed = figures(published / "llmbar" / "verdicts.csv.gz")
    with (published / "llmbar" / "statistics.csv").open() as file:
        truth = {(row["dataset"], row["evaluator"]): row for row in csv.DictReader(file)}
    assert len(computed["evaluators"]) == len(truth) == 215
    for evaluator in computed["evaluators"]:
        row = truth[evaluator["dataset"], evaluator["evaluator"]]
        assert 100 * evaluator["correct_average"] == pytest.approx(float(row["correct_average"].rstrip("%")), abs=1e-6)


def test_llmbar_results_of_one_evaluator(tmp_path: Path) -> None:
    def row(number: int, first: str, second: str) -> dict[str, Any]:
        results = [{"swap = False": {"winner": first}, "swap = True": {"winner": second}}]
        return {"input": f"q{number}", "output_1": "a", "output_2": "b", "label": 1, "results": results}

    rows = [row(n, "1", "1" if n % 2 else "2") for n in range(20)]
    (evaluator,) = figures(write(tmp_path / "result.json", *rows, rows[0]))["evaluators"]
    assert (evaluator["n"], evaluator["correct_average"], evaluator["superseded"]) == (20, 0.75, 1)
    (evaluator,) = invalid(write(tmp_path / "result.json", *rows, *(row(n, "?", "?") for n in range(20, 30))))[
        "evaluators"
    ]
    assert (evaluator["correct_average"], evaluator["unparsed"]) == (None, 20)


def test_pandalm_with_unparsed_verdicts_as_ties_or_as_wrong(published: Path, tmp_path: Path) -> None:
    folder = published / "pandalm"
    (model,) = figures(folder / "testset-v1.json", folder / "pandalm-7b-testset-v1.json")["models"]
    shares = [round(100 * model[name], 2) for name in ("accuracy", "precision", "recall", "f1")]
    assert shares == [66.77, 57.38, 57.5, 57.43]
    votes = write(tmp_path / "a.jsonl", *({"idx": n, **{f"annotator{k}": n % 2 for k in (1, 2, 3)}} for n in range(40)))
    said = write(tmp_path / "b.jsonl", *({"idx": n, "pandalm_result": "?" if n < 2 else n % 2} for n in range(40)))
    assert figures(votes, said)["models"][0]["accuracy"] == 39 / 40
    assert figures(votes, said, "--unparsed-wrong")["models"][0]["accuracy"] == 38 / 40
    few = write(tmp_path / "c.jsonl", *({"idx": n, "pandalm_result": n % 2} for n in range(20)))
    assert invalid(votes, few)["models"][0]["accuracy"] is None
    with pytest.raises(BadInput, match="no annotators"):
        run(said)


def battles(number: int = 400, *, longer: float = 0.0) -> list[dict[str, Any]]:
    """Battles of three models, each better than the next by 100 points; the longer answer wins as if it had `longer`
    more."""
    draw = random.Random(5)
    rating = {"best": 1100.0, "mid": 1000.0, "low": 900.0}
    fought = []
    for n in range(number):
        a, b = draw.sample(sorted(rating), 2)
        words = {a: draw.randint(20, 200), b: draw.randint(20, 200)}
        ahead = rating[a] - rating[b] + longer * (words[a] - words[b]) / (words[a] + words[b])
        won = draw.random() < 1 / (1 + 10 ** (-ahead / 400))
        text = {f"conversation_{side}": "w" * words[who] for side, who in (("a", a), ("b", b))}
        fought.append(
            {"id": n, "model_a": a, "model_b": b, "winner": "model_a" if won else "model_b", "tstamp": n, **text}
        )
    return fought


def test_battles_give_ratings_with_intervals_and_a_matrix(tmp_path: Path) -> None:
    rows = battles(600)
    computed = figures(write(tmp_path / "a.jsonl", *rows, *rows[:9], {**rows[0], "id": 999, "winner": "tie (bothbad)"}))
    assert [model["model"] for model in computed["models"]] == ["best", "mid", "low"]
    for model, truth in zip(computed["models"], (1100, 1000, 900), strict=True):
        assert model["low"] < truth < model["high"]
    assert (computed["superseded"], computed["n"], computed["separability"]) == (9, 601, 1)
    matrix = computed["matrix"]
    assert matrix["best"]["low"] + matrix["low"]["best"] == pytest.approx(1)
    assert computed["models"][0]["elo"] > computed["models"][2]["elo"]


def test_rows_of_one_battle_are_one_vote(tmp_path: Path) -> None:
    rows = [row | {"battle": row["id"] // 3, "id": f"{row['id']}"} for row in battles(600)]
    computed, apart = figures(write(tmp_path / "a.jsonl", *rows)), figures(write(tmp_path / "b.jsonl", *battles(600)))
    assert (computed["n"], apart["n"], computed["rows"]) == (200, 600, 600)
    for one, other in zip(computed["models"], apart["models"], strict=True):
        assert one["n"] < 200 < other["n"]
        assert one["rating"] == pytest.approx(other["rating"], abs=1)
    draw = random.Random(1)
    again = figures(write(tmp_path / "c.jsonl", *draw.sample(rows, len(rows))))
    assert again["models"] == computed["models"], "in whatever order"
    assert figures(write(tmp_path / "d.jsonl", *rows, rows[0] | {"battle": {}}))["bad_rows"] == 1


def test_style_control_takes_the_advantage_of_length_away(tmp_path: Path) -> None:
    rows = battles(500, longer=400)
    computed = figures(write(tmp_path / "a.jsonl", *rows))["style_controlled"]
    assert computed["coefficients"]["length"] > 0.2
    assert [model["model"] for model in computed["models"]] == ["best", "mid", "low"]


def test_battles_of_published_games_and_winners_that_are_none(published: Path, tmp_path: Path) -> None:
    computed = figures(published / "evalica" / "food.csv")
    assert (computed["format"], computed["models"][0]["model"]) == ("battles", "Tacos")
    bad = [{"model_a": "x", "model_b": "y", "winner": "both"}] * 4
    few = [{**row, "winner": "both"} for row in battles(300)[:4]]
    assert figures(write(tmp_path / "b.jsonl", *battles(300), *few))["bad_rows"] == 4
    computed = invalid(write(tmp_path / "a.jsonl", *battles(40), *bad))
    assert (computed["models"], computed["bad_rows"]) == (None, 4)
    assert "'both' in `winner`" in computed["bad"][0]


def test_leaderboards_correlate_over_the_models_of_both(tmp_path: Path) -> None:
    one, other = tmp_path / "a.csv", tmp_path / "b.csv"
    one.write_text("model,score\na,1\nb,2\nc,3\nd,9\n")
    other.write_text(",win_rate\na,10\nb,30\nc,20\ne,1\n")
    computed = figures(one, other, "--format", "leaderboards")
    assert (computed["n"], computed["spearman"], computed["only_in"]) == (3, pytest.approx(0.5), [["d"], ["e"]])
    assert figures(one, one, "--format", "leaderboards", "--column", "score")["kendall"] == pytest.approx(1)
    with pytest.raises(BadInput, match="not of 1"):
        run(one, "--format", "leaderboards")


def test_mt_bench_has_categories_intervals_tests_and_a_winner(published: Path) -> None:
    path = published / "fastchat" / "mt_bench_single_phi3dpo.jsonl"
    (mine,) = figures(path)["models"]
    assert set(mine["categories"]) == {
        *("writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities")
    }
    assert mine["low"] < mine["average"] < mine["high"]
    questions = published / "fastchat" / "mt_bench" / "question.jsonl"
    assert figures(path, "--questions", questions)["models"][0]["categories"] == mine["categories"]


def test_a_winner_is_named_and_invalid_models_are_compared_with_nobody(tmp_path: Path) -> None:
    rows = [single(n, score + n % 2, model=name) for n in range(200, 230) for name, score in (("a", 8), ("b", 3))]
    computed = figures(write(tmp_path / "a.jsonl", *rows))
    assert (computed["winner"], computed["pairs"][0]["p_holm"] < 0.001) == ("a", True)
    rows += [single(n, -1 if n < 215 else 10, model="c") for n in range(200, 230)]
    computed = invalid(write(tmp_path / "a.jsonl", *rows))
    assert (computed["winner"], len(computed["pairs"]), set(computed["rank_scores"])) == ("a", 1, {"a", "b"})


def test_people_see_tables_with_reasons_and_no_invalid_figure(tmp_path: Path) -> None:
    rows = [single(n, -1 if n < 20 else 7.25, model="m") for n in range(40)]
    computed = invalid(write(tmp_path / "a.jsonl", *rows))
    text = io.StringIO()
    print_figures(computed, Console(file=text, width=200))
    assert "INVALID  m: 20 of 40 judgments cannot be used (20 unparsed): more than 5%" in text.getvalue()
    assert "7.25" not in text.getvalue()


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_figure_is_cut_on_a_narrow_terminal(tmp_path: Path, width: int) -> None:
    """A p of 2e-14 must not be read as 2."""
    rows = [single(n, score + n % 2, model=name * 40) for n in range(200, 260) for name, score in (("a", 8), ("b", 3))]
    computed = figures(write(tmp_path / "a.jsonl", *rows))
    text = io.StringIO()
    print_figures(computed, Console(file=text, width=width))
    assert "\u2026" not in text.getvalue()
    assert f"{computed['pairs'][0]['p']:.4g}" in text.getvalue()
    numbers = {"average": 1111.0, "win_rate": 2222.0, "standard_error": 3333.0, "discrete_win_rate": 4444.0}
    numbers |= {"length_controlled_minimal": 5555.0, "lc_standard_error": 6666.0, "avg_length": 7777.0, "n": 8888}
    print_figures({**computed, "models": [{"model": "m" * 40, **numbers}]}, Console(file=text, width=width))
    assert "\u2026" not in text.getvalue()
    assert all(f"{number:.4g}" in text.getvalue() for number in numbers.values())
