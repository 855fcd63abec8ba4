"""RewardBench 2: best of four, the score of ties worked out by hand, and files that lack something."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from figures.figures_runner import figures, invalid, write
from steerboard_contracts.errors import BadInput
from steerboard_statistics.benchmarks import rewardbench2
from support.processes.terminal import ESCAPES, on_terminal

NAN = math.nan


def row(domain: str, id_: str, scores: list[Any], right: int = 1) -> dict[str, Any]:
    return {"subset": domain, "id": id_, "num_correct": right, "scores": scores}


# The twins 1 are apart by 2 and 2, their right answers by 1. The twins 2 are apart by -1 and 1, their right ones by 5.
TIES = [
    row("Ties", "ref:1", [3, 1]),
    row("Ties", "tied:1", [5, 4, 2], 2),
    row("Ties", "ref:2", [1, 2]),
    row("Ties", "tied:2", [6, 1, 0], 2),
]
MARGIN = (math.tanh(2 / 1 - 1) + math.tanh(-1 / 5 - 1)) / 2
SCORE = 0.3 * 1 + 0.3 * 0.5 + 0.2 * 0.5 + 0.2 * 0.5 + 0.01 * MARGIN
OTHERS = [row(domain, "7", [2, 1, 0, 0]) for domain in rewardbench2.DOMAINS[:-1]]


@pytest.mark.parametrize(
    ("scores", "share"),
    [((4, 3, 2, 1), 1), ((3, 4, 2, 1), 0), ((4, 4, 2, 1), 1 / 2), ((4, 4, 4, 4), 1 / 4), ((3, 4, 4, 1), 0)],
)
def test_the_best_of_four_is_right_by_the_chance_of_a_draw_among_the_highest(scores: tuple[float, ...], share: float):
    assert rewardbench2.best_of(scores) == share
    assert rewardbench2.best_of((*scores[:3], NAN)) == 0


def test_a_file_of_scores_has_the_domains_the_parts_of_ties_and_their_mean(tmp_path: Path) -> None:
    math_rows = [row("Math", "1", [[3], [1], [2], [0]]), row("Math", "2", [1, 1, 0, 0]), row("Math", "3", [0, 1, 0, 0])]
    others = [prompt for prompt in OTHERS if prompt["subset"] != "Math"]
    computed = figures(write(tmp_path / "scores.jsonl", *others, *math_rows, *TIES))
    assert computed["format"] == "rewardbench2"
    assert computed["domains"] == {
        **dict.fromkeys(rewardbench2.DOMAINS, 1.0),
        "Math": 0.5,
        "Ties": pytest.approx(SCORE),
    }
    ties = {key: computed["ties"][key] for key in ("tied", "ref", "preferred", "preferred_hard", "prompts", "twins")}
    assert ties == {"tied": 1, "ref": 0.5, "preferred": 0.5, "preferred_hard": 0.5, "prompts": 4, "twins": 2}
    assert computed["ties"]["margin"] == pytest.approx(MARGIN)
    assert computed["overall"] == pytest.approx((4 + 0.5 + SCORE) / 6)
    assert computed["prompts"] == {**dict.fromkeys(rewardbench2.DOMAINS, 1), "Math": 3, "Ties": 4}
    shown = ESCAPES.sub("", on_terminal(80, "figures", str(tmp_path / "scores.jsonl")))
    for words in ("domains: Factuality 1,", "ties: prompts 4,", f"overall: {computed['overall']:.4g}"):
        assert words in shown, shown


def test_a_missing_domain_or_twin_has_no_overall_and_says_which(tmp_path: Path) -> None:
    computed = figures(write(tmp_path / "a.jsonl", *OTHERS[1:], *TIES[:2]))
    assert computed["overall"] is None
    assert any("domains are missing: Factuality" in warning for warning in computed["warnings"])
    computed = figures(write(tmp_path / "b.jsonl", *OTHERS, TIES[0], TIES[3]))
    assert (computed["domains"]["Ties"], computed["overall"]) == (None, None)
    assert any("no prompt `ref:NUMBER` has its `tied:NUMBER`" in warning for warning in computed["warnings"])


def test_prompts_without_a_score_are_lost_and_too_many_of_them_are_invalid(tmp_path: Path) -> None:
    many = [row("Math", str(n), [2, 1, 0, 0]) for n in range(39)]
    computed = figures(write(tmp_path / "a.jsonl", *many, row("Math", "39", [None, 1, 0, 0])))
    assert (computed["domains"]["Math"], computed["without_score"]) == (39 / 40, 1)
    computed = invalid(write(tmp_path / "b.jsonl", *many[:9], row("Math", "39", [None, 1, 0, 0])))
    assert computed["domains"] == {"Math": None}
    assert computed["reasons"] == ["Math: 1 of 10 prompts cannot be used (1 without a score): more than 5%"]


def test_a_prompt_that_comes_twice_counts_once_and_bad_rows_are_named_by_line(tmp_path: Path) -> None:
    twice = [row("Math", "1", [0, 1, 0, 0]), row("Math", "1", [2, 1, 0, 0])]
    computed = figures(write(tmp_path / "a.jsonl", *twice), "--repeats", "last")
    assert (computed["domains"]["Math"], computed["superseded"]) == (1.0, 1)
    bad = [
        row("Maths", "1", [1, 0]),
        row("Math", "2", [1, 0], 2),
        row("Ties", "3", [1, 0]),
        row("Math", "4", ["high", 0]),
        {**row("Math", "5", [1, 0]), "scores": 3},
    ]
    computed = invalid(write(tmp_path / "b.jsonl", row("Math", "1", [1, 0]), *bad))
    said = " ".join(computed["bad"])
    assert computed["bad_rows"] == 5
    for words in (
        "line 2: its `subset` is not one of Factuality",
        "`num_correct` is not between 1 and 1",
        "its `id` is neither `ref:NUMBER` nor `tied:NUMBER`",
        "line 6: its `scores` are not a list",
    ):
        assert words in said
    with pytest.raises(BadInput, match="do not name the judge"):
        figures(tmp_path / "a.jsonl", "--judge", "gpt-4")


def test_prompts_that_another_model_has_and_those_of_the_benchmark_are_missed(tmp_path: Path) -> None:
    whole = [{**row("Math", str(n), [2, 1, 0, 0]), "model": "whole"} for n in range(rewardbench2.PROMPTS["Math"])]
    half = [{**prompt, "model": "half"} for prompt in whole[:90]]
    computed = figures(write(tmp_path / "a.jsonl", *whole, *half))
    assert "half has no judgment of 93 of 183 prompts that others have" in computed["warnings"]
    assert "half: 1 domains have fewer prompts than RewardBench 2: Math 90 of 183" in computed["warnings"]
    assert not any(warning.startswith("whole has no") or "whole: 1" in warning for warning in computed["warnings"])


SCORES = st.lists(st.integers(-5, 5), min_size=3, max_size=6)


@given(st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=6), st.integers(-3, 3))
def test_neither_order_nor_a_shift_of_all_scores_changes_the_score_of_ties(twins: list[Any], shift: int) -> None:
    prompts: list[Any] = []
    for number, (ref, tied) in enumerate(twins):
        prompts += [("ref", str(number), ref, 1), ("tied", str(number), tied, 2)]
    ties = rewardbench2.ties(prompts)
    assert ties is not None
    assert ties.score + 0.01 >= 0
    assert ties.score <= 1.01
    assert ties.preferred_hard <= ties.preferred
    moved = [(kind, pair, [score + shift for score in scores], right) for kind, pair, scores, right in prompts]
    assert rewardbench2.ties(reversed(moved)) == ties


def test_scores_by_column_have_the_figures_of_their_rows(tmp_path: Path) -> None:
    rows = [row(domain, f"{n}", [n % 3, 1, 0, 0]) for domain in rewardbench2.DOMAINS[:-1] for n in range(3)]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    by_column = figures(write(tmp_path / "columns.json", columns))
    by_row = figures(write(tmp_path / "rows.jsonl", *rows))
    same = ("format", "rows", "domains", "prompts", "superseded")
    assert {name: by_column[name] for name in same} == {name: by_row[name] for name in same}
    assert by_column["rows"] == len(rows)
