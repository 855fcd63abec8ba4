"""Two judges in one file are two results, however the file names them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from figures.figures_runner import annotation, figures, invalid, run, single, write
from steerboard_contracts.errors import BadInput
from steerboard_files.errors import BrokenFile


def results(*arguments: object) -> dict[str, Any]:
    return {result["judge"]: result for result in figures(*arguments)["results"]}


@pytest.mark.parametrize("name", ["annotator", "judge"])
def test_annotations_name_their_judge_as_annotator_or_as_judge(tmp_path: Path, name: str) -> None:
    rows = [annotation(n, 1.9 if who == "kind" else 1.1, **{name: who}) for n in range(20) for who in ("kind", "hard")]
    path = write(tmp_path / "a.jsonl", *rows)
    assert {who: result["models"][0]["win_rate"] for who, result in results(path).items()} == {
        "kind": pytest.approx(90),
        "hard": pytest.approx(10),
    }
    assert figures(path, "--judge", "hard")["models"][0]["win_rate"] == pytest.approx(10)
    table = tmp_path / "a.csv"
    lines = [f"m,{1.9 if who == 'kind' else 1.1},{n},{who}" for n in range(20) for who in ("kind", "hard")]
    table.write_text("\n".join([f"model,preference,index,{name}", *lines]))
    assert results(table)["hard"]["models"][0]["win_rate"] == pytest.approx(10)


def battles(who: Any, kept: str, field: str = "judge") -> list[dict[str, Any]]:
    """Battles on MT-Bench's questions, as its human judgments have them: one id for all pairs of models and both
    turns."""
    return [
        {"question_id": 81 + n, "model_a": a, "model_b": b, "turn": turn, field: who}
        | {"winner": ("model_a" if a == kept else "model_b") if n % 5 and kept in (a, b) else "tie"}
        for n in range(20)
        for a, b in (("a", "b"), ("b", "c"), ("c", "a"))
        for turn in (1, 2)
    ]


@pytest.mark.parametrize(
    ("field", "judges"),
    [
        ("judge", (["gpt-4", "pair-v2"], ["claude", "pair-v2"])),
        ("voter", (17, 18)),
        ("judge", ("author_1", "expert_2")),
    ],
)
def test_battles_of_two_judges_are_two_leaderboards(tmp_path: Path, field: str, judges: tuple[Any, Any]) -> None:
    first, second = judges
    rows = battles(first, "a", field) + battles(second, "b", field)
    path = write(tmp_path / "a.jsonl", *rows)
    boards = results(path)
    assert [board["matrix"]["a"]["b"] for board in boards.values()] == [pytest.approx(0.9), pytest.approx(0.1)]
    assert [(board["n"], board["superseded"]) for board in boards.values()] == [(120, 0), (120, 0)]
    together = figures(path, "--crowd")
    assert (together["n"], together["matrix"]["a"]["b"]) == (240, 0.5)


def test_a_crowd_of_voters_is_counted_together_only_when_asked(tmp_path: Path) -> None:
    rows = [{**row, "judge": f"arena_user_{n}", "id": n} for n, row in enumerate(battles("x", "a"))]
    path = write(tmp_path / "a.jsonl", *rows)
    with pytest.raises(BadInput, match="120 judges have battles here"):
        run(path)
    assert figures(path, "--crowd")["n"] == 120
    with pytest.raises(BadInput, match="--crowd applies only to battle files"):
        run(write(tmp_path / "b.jsonl", single(1, 5)), "--crowd")


def test_evaluators_without_a_name_are_their_files(tmp_path: Path) -> None:
    files = []
    for folder, right in (("one", 1), ("two", 2)):
        (tmp_path / folder).mkdir()
        verdict = {"label": 1, "winner_order12": right, "winner_order21": right, "dataset": "Natural"}
        files.append(write(tmp_path / folder / "verdicts.jsonl", *({**verdict, "idx": n} for n in range(20))))
    computed = figures(*files)["evaluators"]
    assert [(evaluator["n"], evaluator["correct_average"], evaluator["superseded"]) for evaluator in computed] == [
        (20, 1, 0),
        (20, 0, 0),
    ]
    rows = [{**verdict, "idx": n, "judge": f"j{n % 2}", "winner_order12": 1 + n % 2} for n in range(40)]
    computed = figures(write(tmp_path / "c.jsonl", *rows))["evaluators"]
    assert {evaluator["evaluator"]: evaluator["correct_12"] for evaluator in computed} == {"j0": 20, "j1": 0}


def test_rewards_of_two_models_are_two_results(tmp_path: Path) -> None:
    rows = [
        {"subset": "hep-go", "id": n, "model": model, "chosen_reward": chosen, "rejected_reward": 0}
        for n in range(20)
        for model, chosen in (("good", 1), ("bad", -1))
    ]
    path = write(tmp_path / "a.jsonl", *rows)
    assert {name: result["subsets"]["hep-go"] for name, result in results(path).items()} == {"good": 1, "bad": 0}
    assert figures(path, "--judge", "bad")["subsets"]["hep-go"] == 0
    broken = [{**rows[1], "id": 90 + n, "chosen_reward": "x"} for n in range(5)]
    usable = {result["judge"]: result for result in invalid(write(tmp_path / "b.jsonl", *rows, *broken))["results"]}
    assert (usable["good"]["subsets"], usable["bad"]["subsets"]) == ({"hep-go": 1}, None)
    scores = [
        {"subset": "Math", "id": n, "num_correct": 1, "model": model, "scores": scores}
        for n in range(20)
        for model, scores in (("good", [1, 0]), ("bad", [0, 1]))
    ]
    usable = results(write(tmp_path / "c.jsonl", *scores))
    assert {name: result["domains"]["Math"] for name, result in usable.items()} == {"good": 1, "bad": 0}


def test_templates_of_one_whole_are_one_judge_and_two_versions_are_two(published: Path, tmp_path: Path) -> None:
    path = published / "fastchat" / "mt_bench_single_phi3dpo.jsonl"
    assert "models" in figures(path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    said = [{**row, "judge": [row["judge"][0], row["judge"][1].replace("v1", "v2")], "score": 1} for row in rows]
    by_judge = results(write(tmp_path / "a.jsonl", *rows, *said[:30]))
    assert {(result["models"][0]["average"] == 1) for name, result in by_judge.items() if "v2" in name} == {True}
    assert sum(result["models"][0]["n"] for result in by_judge.values()) == 190
    math = [{**single(n, 2), "judge": ["gpt-4", "single-math-v1"]} for n in range(20)]
    by_judge = results(write(tmp_path / "b.jsonl", *(single(n, 8) for n in range(20)), *math))
    assert {result["models"][0]["average"] for result in by_judge.values()} == {8, 2}


def test_reviewers_of_one_question_are_kept_apart(published: Path, tmp_path: Path) -> None:
    path = published / "vicuna_blog" / "review" / "others" / "review_llama_alpaca-13b.jsonl"
    (whole,) = figures(path)["files"]
    assert whole["n"] == 80
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    again = [{**row, "reviewer_id": "other", "score": [1, 10]} for row in rows]
    by_reviewer = {file.get("judge"): file for file in figures(write(tmp_path / "a.jsonl", *rows, *again))["files"]}
    assert (by_reviewer["other"]["share_1"], by_reviewer[None]["total_1"]) == (0.1, whole["total_1"])
    kinds = ["default", "coding", "math"]
    named = [{**row, "reviewer_id": f"gpt-4-0328-{kinds[row['reviewer_id'] - 1]}"} for row in rows]
    (file,) = figures(write(tmp_path / "b.jsonl", *named), "--judge", "gpt-4-0328")["files"]
    assert (file["total_1"], file["n"]) == (whole["total_1"], 80)


def test_a_quote_in_a_text_that_is_never_closed(tmp_path: Path) -> None:
    """The text extends to the next quote: rows vanish, and what is left looks like a table."""
    header = "generator_2,preference,generator_1,len_2,instruction,annotator"
    lines = [f"m,{1 + n % 9 / 10},b,{n},do {n},j" for n in range(300)]
    path = tmp_path / "a.csv"
    for first, last in ((100, 200), (100, 101)):
        broken = [*lines]
        broken[first] = f'm,1.5,b,{first},"do {first},j'
        broken[last] = f'm,1.5,b,{last},do {last}",j'
        path.write_text("\n".join([header, *broken]))
        with pytest.raises(BrokenFile, match="line 102"):
            run(path)
    whole = [*lines[:7], 'm,1.5,b,9,"Rows of a table:\na,1,2\nb,3,4",j', *lines[7:]]
    path.write_text("\n".join([header, *whole]))
    assert figures(path)["rows"] == 301
    battles = ["id,conversation_a,conversation_b,winner,model_a,model_b"]
    battles += [f"{n},hi {n},ho {n},model_a,x{n % 3},y" for n in range(40)]
    battles[9], battles[12] = '8,"hi 8,ho 8,model_a,x2,y', '11,hi 11",ho 11,model_a,x2,y'
    path.write_text("\n".join(battles))
    with pytest.raises(BrokenFile, match="line 10"):
        run(path)
