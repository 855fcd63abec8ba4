"""LLMBar, PandaLM and RewardBench, from their own files."""

from __future__ import annotations

import csv
import gzip
import json
import math
from pathlib import Path

import pytest

from steerboard_statistics.benchmarks import llmbar, pandalm, rewardbench


def verdict(text: str) -> int | None:
    return int(text) if text else None


def share(text: str) -> int:
    """The count of `29 / 54 = 53.7%`."""
    return int(text.split("/")[0])


def test_llmbar_agreement_equals_the_published_statistics(published: Path) -> None:
    """All columns of all 215 evaluators. Its kappas are reproduced with its own coding of verdicts."""
    rows: dict[tuple[str, str], list[llmbar.Row]] = {}
    with gzip.open(published / "llmbar" / "verdicts.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            key = row["dataset"], row["evaluator"]
            rows.setdefault(key, []).append(
                (int(row["label"]), verdict(row["winner_order12"]), verdict(row["winner_order21"]))
            )
    with (published / "llmbar" / "statistics.csv").open() as file:
        statistics = list(csv.DictReader(file))
    assert len(statistics) == len(rows) == 215
    for truth in statistics:
        mine = rows[truth["dataset"], truth["evaluator"]]
        agreement, kappas = llmbar.agreement(mine), llmbar.published_kappas(mine)
        counts = (agreement.correct_12, agreement.correct_21, agreement.correct_both, agreement.equal)
        assert counts == tuple(share(truth[n]) for n in ("correct_False", "correct_True", "correct_both", "equal"))
        assert 100 * agreement.correct_average == pytest.approx(float(truth["correct_average"].rstrip("%")), abs=1e-6)
        for ours, column in (
            (kappas.order_12, "kappa_False"),
            (kappas.order_21, "kappa_True"),
            (kappas.average, "kappa_average"),
            (kappas.between, "kappa_agreement"),
        ):
            theirs = float(truth[column] or "nan")
            assert (ours is None) == math.isnan(theirs)
            assert ours is None or ours == pytest.approx(theirs, abs=1e-6)


def test_llmbar_kappa_is_one_for_an_evaluator_that_is_always_right() -> None:
    """The published coding gives less."""
    rows: list[llmbar.Row] = [(1, 1, 1), (2, 2, 2), (1, 1, 1), (2, 2, 2)]
    assert llmbar.agreement(rows).kappa_12 == 1
    published_one = llmbar.published_kappas(rows).order_12
    assert published_one is not None
    assert published_one < 1


def test_llmbar_counts_what_was_not_parsed() -> None:
    agreement = llmbar.agreement([(1, None, None), (2, 2, None), (1, 1, 2)])
    assert (
        agreement.correct_12,
        agreement.correct_21,
        agreement.correct_both,
        agreement.equal,
        agreement.unparsed,
    ) == (2, 0, 0, 1, 3)


def test_pandalm_against_the_majority_of_its_annotators(published: Path) -> None:
    """The paper reports accuracy 66.77, precision 57.38, recall 57.50 and F1 57.43 for PandaLM-7B."""
    items = json.loads((published / "pandalm" / "testset-v1.json").read_text())
    answers = {
        row["idx"]: row for row in json.loads((published / "pandalm" / "pandalm-7b-testset-v1.json").read_text())
    }
    rows = [([item[f"annotator{i}"] for i in (1, 2, 3)], answers[item["idx"]]["pandalm_result"]) for item in items]
    agreement = pandalm.agreement(rows)
    figures = [
        round(100 * value, 2) for value in (agreement.accuracy, agreement.precision, agreement.recall, agreement.f1)
    ]
    assert figures == [66.77, 57.38, 57.5, 57.43]
    assert (agreement.n, agreement.split) == (999, 0)


def test_pandalm_leaves_out_items_without_a_majority() -> None:
    agreement = pandalm.agreement([([0, 1, 2], 1), ([1, 1, 2], 1), ([2, 2, 2], None)])
    assert (agreement.n, agreement.split, agreement.unparsed, agreement.accuracy) == (2, 1, 1, 0.5)


def test_rewardbench_weights_and_sections_are_the_published_ones(published: Path) -> None:
    text = (published / "rewardbench" / "section_weights.json").read_text()
    constants = json.loads(text[text.index("{") :])
    assert constants["EXAMPLE_COUNTS"] == rewardbench.WEIGHTS
    assert {name: tuple(subsets) for name, subsets in constants["SUBSET_MAPPING"].items()} == rewardbench.SECTIONS
    assert rewardbench.WEIGHTS["math-prm"] == 984


def test_rewardbench_sections_of_a_published_results_file(published: Path) -> None:
    path = published / "rewardbench" / "subset_scores_general-preference__GPM-Gemma-2B.json"
    sections = rewardbench.sections(json.loads(path.read_text()))
    assert {name: round(100 * value, 2) for name, value in sections.sections.items()} == {
        "Chat": 78.49,
        "Chat Hard": 66.23,
        "Safety": 84.32,
        "Reasoning": 80.47,
    }
    assert sections.overall == pytest.approx(0.7737741, abs=1e-6)
    assert (sections.incomplete, sections.unknown) == ({}, [])


def test_rewardbench_reasoning_is_half_math() -> None:
    code = {f"hep-{language}": 0.5 for language in ("cpp", "go", "java", "js", "python", "rust")}
    sections = rewardbench.sections({**code, "math-prm": 1.0, "model": "m", "other": 0.1})
    assert sections.sections == {"Reasoning": pytest.approx(0.75)}
    assert (sections.overall, sections.unknown) == (None, ["other"])
    assert set(sections.incomplete) == {"Chat", "Chat Hard", "Safety"}


def test_a_pair_is_won_only_if_chosen_is_above_rejected() -> None:
    pairs = [("a", 1.0, 0.5), ("a", 1.0, 1.0), ("a", 0.0, 1.0), ("a", math.nan, 0.0), ("b", 2.0, 1.0)]
    assert rewardbench.subset_accuracies(pairs) == {"a": 0.25, "b": 1.0}
