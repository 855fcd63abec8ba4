"""Whatever happens to a file of one of the other formats, a figure of it is right, or marked invalid, or refused."""

from __future__ import annotations

import csv
import gzip
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import scipy
from hypothesis import example, given
from hypothesis import strategies as st

from figures.figures_runner import write
from figures.mutations import (
    CHANGES,
    MOST,
    Change,
    Row,
    broken_share,
    changed,
    latest,
    lost_share,
    mutated,
    together,
)
from steerboard_contracts.errors import BadInput
from steerboard_figures.judgment_figures import Options, figures


def same(row: Row) -> Row:
    return row


@given(CHANGES)
@mutated
def test_grades_without_a_judge(published: Path, tmp_path: Path, changes: list[Change]) -> None:
    path = published / "arena_hard" / "arena-bench-v1_single" / "claude-2.1.jsonl.gz"
    with gzip.open(path, "rt") as file:
        whole = [{key: value for key, value in json.loads(line).items() if key != "judgment"} for line in file]
    rows = changed(whole, changes, lambda row: {**row, "score": None}, same)
    if not rows:
        return
    computed = figures([write(tmp_path / "a.jsonl", *rows)], "arena_bench", Options())
    kept = latest(rows, lambda row: row["question_id"], lambda row: row["score"] not in (None, -1))
    usable = [row["score"] for row in kept.values() if row["score"] not in (None, -1)]
    assert computed["valid"] == (lost_share(rows, kept, lambda row: row["score"] not in (None, -1)) <= MOST)
    for model in computed["models"]:
        assert model["average"] == (pytest.approx(sum(usable) / len(usable)) if computed["valid"] else None)


@given(CHANGES)
@mutated
def test_games_against_a_baseline(tmp_path: Path, changes: list[Change]) -> None:
    """The maximum likelihood of two models is the share of the win, however strong."""
    draw = random.Random(3)
    labels = ("A>>B", "A>B", "A=B", "B>A", "B>>A")
    whole = [
        {"question_id": n, "model": "m", "baseline": "base"}
        | {"games": [{"score": draw.choice(labels)}, {"score": draw.choice(labels)}]}
        for n in range(60)
    ]

    def swap(row: Row) -> Row:
        return {**row, "model": row["baseline"], "baseline": row["model"], "games": row["games"][::-1]}

    rows = changed(whole, changes, lambda row: {**row, "games": [{"score": None}] * 2}, swap)
    if not rows:
        return
    computed = figures([write(tmp_path / "a.jsonl", *rows)], "arena_hard", Options(baseline="base"))
    kept = latest(rows, lambda row: row["question_id"], lambda row: row["games"][0]["score"] is not None)
    valid = lost_share(rows, kept, lambda row: row["games"][0]["score"] is not None) <= MOST
    assert computed["valid"] == valid
    points = weights = 0.0
    for row in kept.values():
        for place, game in enumerate(row["games"]):
            if game["score"] is None:
                continue
            weight = 3 if len(game["score"]) == 4 else 1
            first = {"A>": 1.0, "A=": 0.5, "B>": 0.0}[game["score"][:2]]
            points += weight * (first if (place == 1) == (row["model"] == "m") else 1 - first)
            weights += weight
    mine = [model["win_rate"] for model in computed["models"] if model["model"] == "m"]
    assert mine == ([pytest.approx(100 * points / weights, abs=1e-3)] if valid else [None] * len(mine))


@given(CHANGES)
@example([("drop", 0.01, 0), ("corrupt", 0.03, 0), ("silence", 0.01, 442)])
@mutated
def test_reviews(published: Path, tmp_path: Path, changes: list[Change]) -> None:
    path = published / "vicuna_blog" / "review" / "others" / "review_llama_alpaca-13b.jsonl"
    whole = [{**json.loads(line), "text": ""} for line in path.read_text().splitlines()]

    def swap(row: Row) -> Row:
        return {**row, "answer1_id": row["answer2_id"], "answer2_id": row["answer1_id"], "score": row["score"][::-1]}

    rows = changed(whole, changes, lambda row: {**row, "score": [-1, -1]}, swap)
    if not rows:
        return
    (file,) = figures([write(tmp_path / "a.jsonl", *rows)], "vicuna_review", Options())["files"]
    kept = latest(rows, lambda row: row["question_id"], lambda row: row["score"] != [-1, -1])
    # A file is one result, so lines that no one can read and reviews without scores add up.
    broken = sum(isinstance(row, str) for row in rows)
    silent = sum(row["score"] == [-1, -1] for row in kept.values())
    assert file["valid"] == (bool(kept) and (broken + silent) / (broken + len(kept)) <= MOST)
    first = {row["question_id"]: row["answer1_id"] for row in reversed(rows) if isinstance(row, dict)}
    sides = [
        row["score"] if row["answer1_id"] == first[question] else row["score"][::-1]
        for question, row in kept.items()
        if row["score"] != [-1, -1]
    ]
    wanted = [sum(side[place] for side in sides) for place in (0, 1)] if file["valid"] else [None, None]
    assert [file["total_1"], file["total_2"]] == wanted


@given(CHANGES, st.sampled_from(["rewardbench", "rewardbench2"]))
@mutated
def test_rewards(tmp_path: Path, changes: list[Change], format: str) -> None:
    """Both sizes of a subset: one of its rows may be more than its share."""
    draw, two = random.Random(7), format == "rewardbench2"
    names = ("Math", "Focus") if two else ("hep-go", "donotanswer")
    whole = [
        {"subset": name, "id": n, "num_correct": 1, "scores": [draw.gauss(0.5, 1), 0.0]}
        for name, size in zip(names, (25, 300), strict=True)
        for n in range(size)
    ]
    if not two:
        whole = [
            {"subset": row["subset"], "id": row["id"], "chosen_reward": row["scores"][0], "rejected_reward": 0}
            for row in whole
        ]

    def silence(row: Row) -> Row:
        return {**row, "scores": [None, 0.0]} if two else {**row, "chosen_reward": None}

    def reward(row: Row) -> float | None:
        return row["scores"][0] if two else row["chosen_reward"]

    rows = changed(whole, changes, silence, same)
    if not any(isinstance(row, dict) for row in rows):
        return
    computed = figures([write(tmp_path / "a.jsonl", *rows)], format, Options())
    kept = latest(rows, lambda row: (row["subset"], row["id"]), lambda row: reward(row) is not None)
    by_subset: dict[str, list[float | None]] = {}
    for row in kept.values():
        by_subset.setdefault(row["subset"], []).append(reward(row))
    broken = broken_share(rows)
    lost_of = {name: together(mine.count(None) / len(mine), broken) > MOST for name, mine in by_subset.items()}
    for name, mine in by_subset.items():
        lost = lost_of[name]
        wanted = None if lost else pytest.approx(sum(value is not None and value > 0 for value in mine) / len(mine))
        assert ((computed["domains" if two else "subsets"] or {}).get(name)) == wanted
    assert computed["valid"] == (not any(lost_of.values()))


@given(st.sets(st.integers(0, 22), max_size=3), st.sampled_from(["drop", "percent", "text", "null"]))
@mutated
def test_results(published: Path, tmp_path: Path, hit: set[int], done: str) -> None:
    (file,) = (published / "rewardbench").glob("subset_scores*.json")
    whole = json.loads(file.read_text())
    names = sorted(name for name, value in whole.items() if isinstance(value, float))
    chosen = {names[place] for place in hit}
    change = {"percent": lambda value: 100 * value, "text": lambda _: "good", "null": lambda _: None}
    rows = {
        name: change[done](value) if name in chosen and done != "drop" else value
        for name, value in whole.items()
        if done != "drop" or name not in chosen
    }
    path = tmp_path / "results.json"
    path.write_text(json.dumps(rows))
    refused = {"percent": "between 0 and 1", "text": "not an accuracy"}.get(done)
    if chosen and refused:
        with pytest.raises(BadInput, match=refused):
            figures([path], "auto", Options())
        return
    computed = figures([path], "auto", Options())
    assert (computed["overall"] is None) == bool(chosen)


@given(CHANGES)
@mutated
def test_verdicts_of_evaluators(published: Path, tmp_path: Path, changes: list[Change]) -> None:
    from sklearn.metrics import cohen_kappa_score  # slow to import, and every process collects this

    with gzip.open(published / "llmbar" / "verdicts.csv.gz", "rt") as file:
        table = [row for row in csv.DictReader(file) if row["dataset"] == "LLMBar/Natural"]
    evaluators = sorted({row["evaluator"] for row in table})[:3]
    whole = [row for row in table if row["evaluator"] in evaluators]
    rows = changed(whole, changes, lambda row: {**row, "winner_order12": "", "winner_order21": "?"}, same)
    if not any(isinstance(row, dict) for row in rows):
        return
    computed = figures([write(tmp_path / "a.jsonl", *rows)], "llmbar", Options())
    kept = latest(rows, lambda row: (row["evaluator"], row["idx"]), lambda row: row["winner_order12"] != "")
    for evaluator in computed["evaluators"]:
        mine = [row for row in kept.values() if row["evaluator"] == evaluator["evaluator"]]
        said = [(row["label"], row[order]) for row in mine for order in ("winner_order12", "winner_order21")]
        lost = together(sum(verdict not in ("1", "2") for _, verdict in said) / len(said), broken_share(rows))
        assert evaluator["valid"] == (lost <= MOST)
        right = sum(label == verdict for label, verdict in said) / len(said)
        assert evaluator["correct_average"] == (pytest.approx(right) if evaluator["valid"] else None)
        label, first, second = (
            [int(row[name]) if row[name] in ("1", "2") else 0 for row in mine]
            for name in ("label", "winner_order12", "winner_order21")
        )
        for name, a, b in (("12", first, label), ("21", second, label), ("between", first, second)):
            constant = len({*a, *b}) < 2
            wanted = None if constant or not evaluator["valid"] else pytest.approx(cohen_kappa_score(a, b))
            assert evaluator[f"kappa_{name}"] == wanted


@given(CHANGES)
@mutated
def test_verdicts_on_what_annotators_say(published: Path, tmp_path: Path, changes: list[Change]) -> None:
    from sklearn.metrics import accuracy_score, precision_recall_fscore_support  # slow to import

    folder = published / "pandalm"
    votes = {
        row["idx"]: Counter(row[f"annotator{k}"] for k in (1, 2, 3)).most_common(2)
        for row in json.loads((folder / "testset-v1.json").read_text())
    }
    whole = [
        {"idx": row["idx"], "pandalm_result": row["pandalm_result"]}
        for row in json.loads((folder / "pandalm-7b-testset-v1.json").read_text())
    ]
    rows = changed(whole, changes, lambda row: {**row, "pandalm_result": "?"}, same)
    if not any(isinstance(row, dict) for row in rows):
        return
    said = write(tmp_path / "a.jsonl", *rows)
    (model,) = figures([folder / "testset-v1.json", said], "pandalm", Options())["models"]
    counted = latest(rows, lambda row: row["idx"], lambda row: row["pandalm_result"] != "?")
    kept = {key: row["pandalm_result"] for key, row in counted.items()}
    truth = {key: ranked[0][0] for key, ranked in votes.items() if len(ranked) < 2 or ranked[0][1] > ranked[1][1]}
    mine = [(truth[key], verdict) for key, verdict in kept.items() if key in truth]
    unparsed, missing = sum(verdict not in (0, 1, 2) for _, verdict in mine), len(votes) - len(kept)
    lost = max((unparsed + missing) / (len(mine) + missing), broken_share(rows) * len(rows) / (len(rows) + len(votes)))
    assert model["valid"] == (lost <= MOST)
    names = ("accuracy", "precision", "recall", "f1")
    if not model["valid"]:
        assert [model[name] for name in names] == [None] * 4
        return
    right, named = zip(*((is_, verdict if verdict in (0, 1, 2) else 0) for is_, verdict in mine), strict=True)
    macro = precision_recall_fscore_support(right, named, average="macro", zero_division=0)[:3]
    assert [model[name] for name in names] == pytest.approx([accuracy_score(right, named), *macro])


@given(CHANGES)
@mutated
def test_leaderboards(tmp_path: Path, changes: list[Change]) -> None:
    draw = random.Random(6)
    whole = [{"model": f"m{n}", "score": f"{n + draw.gauss(0, 9):.3f}"} for n in range(60)]
    rows = changed(whole, changes, lambda row: {**row, "score": ""}, same)
    if not rows:
        return
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    lines = ["unclear,x" if isinstance(row, str) else f"{row['model']},{row['score']}" for row in rows]
    for path, mine in zip(paths, (lines, [f"m{n},{n}" for n in range(60)]), strict=True):
        path.write_text("\n".join(["model,score", *mine]))
    computed: dict[str, Any] = figures(paths, "leaderboards", Options())
    kept = {row["model"]: float(row["score"]) for row in rows if isinstance(row, dict) and row["score"]}
    broken = sum(isinstance(row, str) for row in rows)
    lost = not kept or broken / (broken + len(kept)) > MOST or broken / len(rows) > MOST
    assert computed["valid"] == (not lost)
    if lost or len(kept) < 3:
        assert computed["spearman"] is None
        return
    wanted = scipy.stats.spearmanr(list(kept.values()), [float(name[1:]) for name in kept]).statistic
    assert computed["spearman"] == pytest.approx(wanted)
