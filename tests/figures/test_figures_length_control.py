"""AlpacaEval's length control names what it is: which variant, of which prompts, by whose weights."""

from __future__ import annotations

import csv
import gzip
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from figures.figures_runner import annotation, figures, invalid, run, write
from steerboard_contracts.errors import BadInput

C = 2.7825594022071245


def annotations(published: Path, model: str, **more: Any) -> list[dict[str, Any]]:
    """The annotations of the published table, with a text for each prompt."""
    with gzip.open(published / "alpaca_eval" / "preferences_compact.csv.gz", "rt") as file:
        table = [row for row in csv.DictReader(file) if row["model"] == model]
    return [
        {
            "instruction": f"do {row['row']}",
            "generator_1": "base",
            "output_1": "b" * int(row["len_1"]),
            "generator_2": model,
            "output_2": "m" * int(row["len_2"]),
            "dataset": row["dataset"],
            "preference": float(row["preference"]) if row["preference"] else None,
            **more,
        }
        for row in table
    ]


def test_every_variant_has_a_name_of_its_own(published: Path, tmp_path: Path) -> None:
    folder = published / "alpaca_eval"
    rows = write(tmp_path / "a.jsonl", *annotations(published, "claude-2"))
    hard = ["--difficulty", folder / "instruction_difficulty_recovered.csv", "--c", C]
    (full,) = figures(rows, *hard, "--gamed", folder / "df_gamed_reconstructed.csv")["models"]
    (some,) = figures(rows, *hard)["models"]
    (least,) = figures(rows, "--c", C)["models"]
    assert [variant["variant"] for variant in (full, some, least)] == ["full", "no_regularisation", "minimal"]
    assert full["length_controlled"] == pytest.approx(28.155, abs=0.01)
    assert (some["length_controlled"], least["length_controlled"]) == (None, None)
    rates = full["length_controlled"], some["length_controlled_no_regularisation"], least["length_controlled_minimal"]
    assert len({round(rate, 2) for rate in rates}) == 3
    assert least["lc_standard_error"] is None
    assert int(full["avg_length"]) == 1069
    # 17.2 becomes 28.2: more than 10 points, less than AlpacaEval's bound of a quarter of the way to 100.
    assert "note" not in least or "look at the fit" not in full["note"]
    assert "note" not in full or "in the benchmark's order" not in full["note"]


def test_a_shuffled_file_is_matched_by_text_or_not_at_all(published: Path, tmp_path: Path) -> None:
    folder = published / "alpaca_eval"
    rows = annotations(published, "claude-2")
    shuffled = random.Random(3).sample(rows, len(rows))
    path = write(tmp_path / "a.jsonl", *shuffled)
    control = ["--difficulty", folder / "instruction_difficulty_recovered.csv", "--c", C]
    control += ["--gamed", folder / "df_gamed_reconstructed.csv"]
    (mine,) = figures(path, *control)["models"]
    assert mine["length_controlled"] is None
    assert "the rows do not say which of the benchmark's prompts" in mine["why"]
    prompts = write(tmp_path / "prompts.jsonl", *({"instruction": row["instruction"]} for row in rows))
    (mine,) = figures(path, *control, "--prompts", prompts)["models"]
    assert mine["length_controlled"] == pytest.approx(28.155, abs=0.01)
    assert "note" not in mine


def test_a_file_shuffled_within_its_data_sets_is_matched_by_text_or_not_at_all(published: Path, tmp_path: Path) -> None:
    folder = published / "alpaca_eval"
    rows = annotations(published, "claude-2")
    control = ["--difficulty", folder / "instruction_difficulty_recovered.csv", "--c", C]
    control += ["--gamed", folder / "df_gamed_reconstructed.csv"]
    (straight,) = figures(write(tmp_path / "straight.jsonl", *rows), *control)["models"]
    assert straight["length_controlled"] == pytest.approx(28.155, abs=0.01)
    shuffled = sorted(random.Random(3).sample(rows, len(rows)), key=lambda row: row["dataset"])
    assert [row["dataset"] for row in shuffled] == [row["dataset"] for row in rows]
    path = write(tmp_path / "shuffled.jsonl", *shuffled)
    (mine,) = figures(path, *control)["models"]
    assert (mine["length_controlled"], "the rows do not say" in mine["why"]) == (None, True)
    prompts = write(tmp_path / "prompts.jsonl", *({"instruction": row["instruction"]} for row in rows))
    (mine,) = figures(path, *control, "--prompts", prompts)["models"]
    assert mine["length_controlled"] == straight["length_controlled"]
    mixed = write(tmp_path / "mixed.jsonl", *reversed(rows))
    (mine,) = figures(mixed, *control, "--in-order")["models"]
    assert (mine["length_controlled"], "their data sets are mixed" in mine["why"]) == (None, True)


def test_standard_errors_and_another_baseline_are_those_of_the_leaderboard(published: Path, tmp_path: Path) -> None:
    folder = published / "alpaca_eval"
    name = "FuseChat-Llama-3.1-8B-Instruct"
    control = ["--difficulty", folder / "instruction_difficulty_recovered.csv"]
    control += ["--weights", folder / "glm_weights_published.csv"]
    models = {
        model["model"]: model
        for model in figures(folder / "preferences_compact.csv.gz", *control, "--baseline", "claude-2")["models"]
    }
    assert models[name]["lc_standard_error"] == pytest.approx(0.6668876, abs=1e-6)
    assert models["claude-2"]["against"]["length_controlled"] == pytest.approx(50)
    ahead = models[name]["against"]["length_controlled"]
    assert ahead > models[name]["length_controlled"]
    with pytest.raises(BadInput, match="no weights of 'nobody'"):
        run(folder / "preferences_compact.csv.gz", *control, "--baseline", "nobody")


def test_a_model_without_weights_has_every_other_figure(tmp_path: Path) -> None:
    weights = tmp_path / "weights.csv"
    weights.write_text("model,a,b,c\nother,-1,0,0.5\nexample,-1,0,0.5\n")
    with pytest.raises(BadInput, match="no weights of 'mine'; there are those of other, example"):
        run(write(tmp_path / "a.jsonl", *(annotation(n, 1.5) for n in range(20))), "--weights", weights)
    rows = [annotation(n, 1.5, generator_2=name) for n in range(20) for name in ("mine", "other", "example")]
    computed = figures(write(tmp_path / "b.jsonl", *rows), "--weights", weights)
    assert [model["win_rate"] for model in computed["models"]] == [50, 50, 50]
    rates = {model["model"]: model["length_controlled"] for model in computed["models"]}
    assert rates == {"mine": None, "other": pytest.approx(100 / (1 + math.exp(-0.5))), "example": None}
    assert (
        computed["warnings"][0]
        == "mine has no length-controlled rate: there are no weights of 'mine' among those given"
    )
    assert "unnamed outputs" in computed["warnings"][1]


def test_weights_are_saved_with_the_variant_that_they_are_of(tmp_path: Path) -> None:
    rows = write(tmp_path / "a.jsonl", *(annotation(n, 1 + (n * 37 % 100) / 100) for n in range(40)))
    saved = tmp_path / "weights.csv"
    (fitted,) = figures(rows, "--c", 100, "--save-weights", saved)["models"]
    (taken,) = figures(rows, "--weights", saved)["models"]
    assert (taken["variant"], taken["fitted"], taken["length_controlled"]) == ("minimal", False, None)
    assert taken["length_controlled_minimal"] == fitted["length_controlled_minimal"]
    with pytest.raises(BadInput, match="no fitted weights"):
        run(rows, "--weights", saved, "--save-weights", tmp_path / "other.csv")


def test_a_rate_that_length_control_moves_far_is_pointed_out(tmp_path: Path) -> None:
    weights = tmp_path / "weights.csv"
    weights.write_text("model,a,b,c\nmine,-1,0,3\n")
    rows = write(tmp_path / "a.jsonl", *(annotation(n, 1.4 + n % 2 / 5) for n in range(20)))
    computed = figures(rows, "--weights", weights)
    assert any("length control moves 50.0 to 95.3" in warning for warning in computed["warnings"])
    json.dumps(computed)


def test_one_model_against_two_baselines_has_no_weights_of_its_own(tmp_path: Path) -> None:
    rows = [annotation(n, 1 + n % 3 / 2, generator_1=base) for n in range(40) for base in ("one", "other")]
    path = write(tmp_path / "a.jsonl", *rows)
    for option in (("--save-weights", tmp_path / "w.csv"), ("--baseline", "one")):
        with pytest.raises(BadInput, match="mine was judged against several baselines"):
            run(path, "--c", 10, *option)


def test_weights_give_no_rate_of_no_rows(tmp_path: Path) -> None:
    weights = tmp_path / "w.csv"
    weights.write_text("model,a,b,c\nmine,-1,0,0.5\n")
    computed = invalid(write(tmp_path / "a.jsonl", *[annotation(n, 3) for n in range(5)]), "--weights", weights)
    (mine,) = computed["models"]
    assert (mine["length_controlled"], mine["partial"], mine["why"]) == (None, {}, "there is no row")
