"""`steerboard figures` of two reward models on the same pairs, and of pairs that were judged in one order only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from figures.figures_runner import figures, invalid, pair, printed, write
from steerboard_statistics.benchmarks.rewardbench import PAIRS, SECTIONS, WEIGHTS

Rows = list[dict[str, Any]]


def rewards(subset: str, number: int, model: str, right: bool, **more: Any) -> dict[str, Any]:
    row = {"subset": subset, "id": f"{subset}-{number}", "model": model}
    return {**row, "chosen_reward": float(right), "rejected_reward": 0.5, **more}


def benchmark(right: dict[str, Any]) -> Rows:
    """Every pair of RewardBench. `right`: by model, whether it is on pair n of a subset of m."""
    return [
        rewards(subset, n, model, is_right(n, m))
        for subset, m in PAIRS.items()
        for n in range(m)
        for model, is_right in right.items()
    ]


def named(rows: Rows) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in rows}


def test_two_models_are_compared_by_subset_section_and_in_all(tmp_path: Path) -> None:
    """The accuracies are those of each model alone; ten more pairs of each subset are `good`'s."""
    rows = benchmark({"good": lambda n, m: n >= 3, "bad": lambda n, m: n >= 13})
    computed = figures(write(tmp_path / "a.jsonl", *rows))
    alone = {result["judge"]: result for result in computed["results"]}
    (compared,) = computed["comparisons"]
    assert (compared["a"], compared["b"], compared["n"]) == ("good", "bad", sum(PAIRS.values()))
    for name, row in named(compared["subsets"]).items():
        assert (row["a"], row["b"]) == (alone["good"]["subsets"][name], alone["bad"]["subsets"][name])
        assert (row["only_a"], row["only_b"], row["p"]) == (10, 0, pytest.approx(2 / 2**10))
        assert row["difference"] == pytest.approx(10 / PAIRS[name])
        assert 0 < row["low"] < row["difference"] < row["high"]
        assert row["p_holm"] == pytest.approx(23 * row["p"])
    for name, row in named(compared["sections"]).items():
        assert row["a"] == pytest.approx(alone["good"]["sections"][name])
        assert row["b"] == pytest.approx(alone["bad"]["sections"][name])
    whole = compared["overall"]
    assert (whole["a"], whole["b"]) == pytest.approx((alone["good"]["overall"], alone["bad"]["overall"]))
    by_subset = {name: sum(WEIGHTS[subset] for subset in names) for names in SECTIONS.values() for name in names}
    shares = {name: WEIGHTS[name] / total / 4 for name, total in by_subset.items()}
    assert whole["difference"] == pytest.approx(sum(share * 10 / PAIRS[name] for name, share in shares.items()))
    assert 0 < whole["low"] < whole["difference"] < whole["high"]
    assert whole["p"] < 1e-6
    told = printed(computed)
    assert f"good (a) against bad (b), on the same {sum(PAIRS.values()):,}" in told
    assert f"{whole['difference']:.4g}" in told


def test_models_of_equal_accuracy_differ_where_they_are_right_on_other_pairs(tmp_path: Path) -> None:
    rows = benchmark({"one": lambda n, m: n % 2 == 0, "other": lambda n, m: n % 2 == 1})
    (compared,) = figures(write(tmp_path / "a.jsonl", *rows))["comparisons"]
    go = named(compared["subsets"])["hep-go"]
    assert (go["a"], go["b"], go["only_a"], go["only_b"], go["p"]) == (0.5, 0.5, 82, 82, 1)


def test_a_subset_that_is_invalid_for_one_model_is_not_compared(tmp_path: Path) -> None:
    rows = benchmark({"good": lambda n, m: True, "bad": lambda n, m: n > 9})
    lost = [
        {**row, "chosen_reward": None} if row["model"] == "bad" and row["subset"] == "hep-go" else row for row in rows
    ]
    (compared,) = invalid(write(tmp_path / "a.jsonl", *lost))["comparisons"]
    assert "hep-go" not in named(compared["subsets"])
    assert set(named(compared["sections"])) == {"Chat", "Chat Hard", "Safety"}
    assert "overall" not in compared


def test_pairs_that_nothing_identifies_are_not_compared_and_their_doubles_are_pointed_out(tmp_path: Path) -> None:
    rows = [
        {**rewards("hep-go", n, model, n % 3 > 0), "id": None, "chosen_reward": n / 7, "rejected_reward": 9.0}
        for n in range(164)
        for model in ("one", "other")
    ]
    computed = figures(write(tmp_path / "a.jsonl", *rows))
    assert "comparisons" not in computed
    assert "328 of 328 pairs have neither `id` nor `prompt`" in computed["why"]
    assert not any("doubled" in warning for warning in computed["warnings"])
    twice = figures(write(tmp_path / "b.jsonl", *rows, *rows))
    assert any(
        warning.startswith("one: 164 of 328 pairs have the two rewards of another pair of their subset")
        for warning in twice["warnings"]
    )
    assert "one: 1 subsets have more pairs than RewardBench: hep-go 328 of 164" in twice["warnings"]


def test_two_models_on_best_of_four_are_compared_by_domain(tmp_path: Path) -> None:
    """A score that k answers share is 1/k of a win."""
    rows = [
        {"subset": "Math", "id": n, "num_correct": 1, "model": model, "scores": scores}
        for n in range(40)
        for model, scores in (("good", [2, 1, 0, 0]), ("bad", [1, 1, 0, 0] if n % 2 else [0, 1, 0, 0]))
    ]
    (compared,) = figures(write(tmp_path / "a.jsonl", *rows))["comparisons"]
    (math,) = compared["subsets"]
    assert (math["name"], math["n"], math["a"], math["b"], math["difference"]) == ("Math", 40, 1, 0.25, 0.75)
    assert math["p"] < 1e-6


def test_pairs_of_one_order_name_no_winner(tmp_path: Path) -> None:
    both = [pair(n, "model_1", "model_1") for n in range(40)]
    assert figures(write(tmp_path / "a.jsonl", *both))["winner"] == "a"
    computed = figures(write(tmp_path / "b.jsonl", *(pair(n, "model_1") for n in range(40))))
    assert (computed["winner"], computed["pairs"][0]["significant"]) == (None, False)
    assert computed["why"] == "No winner: 40 of 40 pairs were judged in one order only."
