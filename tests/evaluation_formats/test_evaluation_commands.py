"""`steerboard evaluations`: prompts, answers and judgments in and out, and every row that was left out is reported."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sqlalchemy as sa
from formats_world import ROOT, FormatsWorld, jsonl

from steerboard.accounts.tables import Project
from steerboard.cli.evaluation import evaluations
from steerboard.evaluation import contamination
from steerboard.platform.database import transaction
from support.processes.command_line import Done, Steerboard

QUESTIONS = [{"question_id": 81 + n, "category": "math", "turns": [f"question {n}", "and then?"]} for n in range(3)]


def answer(model: str, question: int, *turns: str, at: float = 1.0) -> dict[str, Any]:
    choices = [{"index": 0, "turns": list(turns)}]
    return {"question_id": question, "answer_id": "x", "model_id": model, "choices": choices, "tstamp": at}


def rating(model: str, question: int, score: float, turn: int = 1, at: float = 1.0) -> dict[str, Any]:
    judge = ["gpt-4", "single-v1"]
    named = {"question_id": question, "model": model, "judge": judge, "turn": turn, "tstamp": at}
    return {**named, "judgment": f"[[{score}]]", "score": score}


class Shell:
    """Commands in a folder of files."""

    def __init__(self, steerboard: Steerboard, url: str, token: str, folder: Path) -> None:
        self._steerboard, self._url, self._token, self.folder = steerboard, url, token, folder

    def __call__(self, *arguments: str, code: int = 0) -> Done:
        done = self._steerboard(self._url, self._token, "evaluations", *arguments)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def file(self, name: str, rows: list[Any]) -> str:
        path = self.folder / name
        path.write_bytes(jsonl(rows))
        return str(path)


@pytest.fixture
def shell(steerboard: Steerboard, url: str, token: str, tmp_path: Path) -> Shell:
    return Shell(steerboard, url, token, tmp_path)


@pytest.fixture
def weekly(shell: Shell) -> Shell:
    """An evaluation `weekly` of three prompts of two turns, with no one in it."""
    printed = shell("import-prompts", shell.file("questions.jsonl", QUESTIONS), "--name", "mine").stdout
    assert printed == "mine: 3 prompts of 2 turns (fastchat)\n"
    assert shell("create", "weekly", "--prompt-set", "mine").stdout == "weekly: 3 prompts, answered\n"
    return shell


def test_rows_of_answers_that_are_left_out_are_told(weekly: Shell) -> None:
    rows = [
        answer("vicuna", 81, "old", "old"),
        answer("vicuna", 81, "new", "new", at=2),
        answer("vicuna", 82, "only one"),
        answer("vicuna", 999, "of another set"),
        {"model_id": "vicuna", "question_id": 83},
        "{broken",
    ]
    file = weekly.file("vicuna.jsonl", rows)
    refused = weekly("import-answers", "weekly", file, code=1)
    assert "--bad-rows skip" in refused.stderr
    assert "line 6" in refused.stderr
    printed = weekly("import-answers", "weekly", file, "--bad-rows", "skip").stdout.splitlines()
    assert printed[0] == "vicuna: 2 answers, 1 missing"
    assert printed[1].strip().startswith("1 rows match none of the prompts; the first, line 4, is about question 999")
    assert printed[2].strip().startswith("2 rows cannot be read; the first, line 5")
    assert printed[3].strip() == "1 answers are duplicates; the newest ones count"
    assert printed[4].strip() == "1 answers have fewer turns than their prompt"


def test_judgments_of_nobody_here_are_told_and_may_bring_their_models(weekly: Shell) -> None:
    weekly("import-answers", "weekly", weekly.file("vicuna.jsonl", [answer("vicuna", 81, "a", "b")]))
    rows = [rating("vicuna", 81, 7), rating("vicuna", 81, -1, turn=2), rating("alpaca", 81, 3)]
    printed = weekly("import-judgments", "weekly", weekly.file("some.jsonl", rows)).stdout.splitlines()
    assert printed[0] == "gpt-4-single: 3 rows, 2 verdicts: 1 ok, 1 unparsed, 0 refused, 0 errors"
    assert printed[1].strip() == "1 rows do not belong here; the first, line 3, judges alpaca, which is not an entrant"
    strange = weekly.file("strange.jsonl", [rating("bard", 81, 5)])
    refused = weekly("import-judgments", "weekly", strange, code=1)
    assert "nothing_matches" in refused.stderr
    assert "--add-entrants" in refused.stderr
    assert "new entrants: bard" in weekly("import-judgments", "weekly", strange, "--add-entrants").stdout
    judged = "judge gpt-4-single: succeeded, 2 verdicts, 1 unparsed, not valid: 1 of 2 verdicts cannot be used"
    assert judged in weekly("show", "weekly").stdout


def test_a_judge_is_deleted_with_its_verdicts(weekly: Shell) -> None:
    weekly("import-answers", "weekly", weekly.file("vicuna.jsonl", [answer("vicuna", 81, "a", "b")]))
    weekly("import-judgments", "weekly", weekly.file("some.jsonl", [rating("vicuna", 81, 7)]))
    assert "judge gpt-4-single" in weekly("show", "weekly").stdout
    unknown = weekly("delete-judge", "weekly", "gpt-5", code=1)
    assert "it has gpt-4-single [unknown_judge]" in unknown.stderr
    assert weekly("delete-judge", "weekly", "gpt-4-single").stdout == "Deleted judge gpt-4-single of weekly\n"
    assert "judge" not in weekly("show", "weekly").stdout


def test_judges_sit_in_a_jury_and_one_without_prices_or_endpoint_has_no_budget(weekly: Shell) -> None:
    weekly("import-answers", "weekly", weekly.file("vicuna.jsonl", [answer("vicuna", 81, "a", "b")]))
    for name in ("one", "two"):
        weekly("import-judgments", "weekly", weekly.file("some.jsonl", [rating("vicuna", 81, 7)]), "--name", name)
    made = weekly("jury", "weekly", "panel", "--judge", "one", "--judge", "two", "--rule", "mean").stdout
    assert made == "panel: mean of one, two\n"
    assert "name_taken" in weekly("jury", "weekly", "panel", "--judge", "one", "--judge", "two", code=1).stderr
    assert weekly("delete-jury", "weekly", "panel").stdout == "Deleted jury panel of weekly\n"
    assert "invalid_judge" in weekly("change-judge", "weekly", "one", "--budget", "5", code=1).stderr
    assert "either --budget or --no-budget" in weekly("change-judge", "weekly", "one", code=64).stderr
    assert weekly("change-judge", "weekly", "one", "--no-budget").stdout == "one: no budget\n"
    assert "imported_judge" in weekly("calibrate", "weekly", "one", "--dataset", "pairs", code=1).stderr


def test_what_is_exported_is_what_was_imported(weekly: Shell) -> None:
    rows = [answer("vicuna", 81 + n, f"first {n}", f"second {n}") for n in range(3)]
    weekly("import-answers", "weekly", weekly.file("vicuna.jsonl", rows))
    out = weekly.folder / "out.jsonl"
    weekly("export", "weekly", str(out), "--entrant", "vicuna")
    told = [(row["question_id"], row["model_id"], row["choices"]) for row in map(json.loads, out.open())]
    assert told == [(row["question_id"], row["model_id"], row["choices"]) for row in rows]
    weekly("import-judgments", "weekly", weekly.file("some.jsonl", [rating("vicuna", 81, 7.5)]), "--name", "gpt")
    weekly("export", "weekly", str(out), "--judge", "gpt")
    assert [(row["score"], row["judgment"]) for row in map(json.loads, out.open())] == [(7.5, "[[7.5]]")]
    for target, words in ((weekly.folder / "no" / "out.jsonl", "cannot_write"), (weekly.folder, "cannot_write")):
        assert words in weekly("export", "weekly", str(target), "--entrant", "vicuna", code=1).stderr
    unknown = weekly("export", "weekly", str(out), "--entrant", "bard", code=1)
    assert "there are vicuna" in unknown.stderr
    assert "it has gpt" in weekly("export", "weekly", str(out), "--judge", "bard", code=1).stderr


def test_entrants_are_given_by_name_by_fields_or_as_json(weekly: Shell) -> None:
    for entrant in ("gone", "model=gone,score=5.0", '{"model": "gone", "decoding": {"max_new_tokens": 8}}'):
        refused = weekly("create", "next", "--prompt-set", "mine", "--entrant", entrant, code=1)
        assert "there is no model 'gone'" in refused.stderr
    for entrant in ("model=", "=gone", "score={,model=a", "{model", "{}{"):
        wrong = weekly("create", "next", "--prompt-set", "mine", "--entrant", entrant, code=64)
        assert "--entrant" in wrong.stderr
    unknown = weekly("create", "next", "--prompt-set", "yours", code=1)
    assert "import-prompts" in unknown.stderr


def test_waiting_goes_on_until_the_prompts_were_looked_for(
    weekly: Shell, world: FormatsWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gate would be invalid before."""
    monkeypatch.setattr(contamination, "ROWS_AT_ONCE", 0)
    rows = jsonl([{"prompt": question["turns"][0], "response": "x"} for question in QUESTIONS])
    world.send("datasets/import", rows, name="train", kind="instructions").raise_for_status()
    body = {"name": "next", "prompts": {"set": "mine"}, "entrants": [], "check_against": ["train"]}
    world.client.post(f"{ROOT}/evaluations", json=body).raise_for_status()
    naps = []

    def look(seconds: float) -> None:
        naps.append(seconds)
        with transaction(world.sessions) as session:
            contamination.check_next(session)

    monkeypatch.setattr(evaluations, "time", SimpleNamespace(sleep=look))
    weekly("wait", "next")
    assert naps == [evaluations.POLL_SECONDS]
    assert world.client.get(f"{ROOT}/evaluations/next").json()["unfinished"] == []


def test_a_judge_is_refused_with_every_field_at_fault(weekly: Shell) -> None:
    refused = weekly("judge", "weekly", "--endpoint", "nobody", "--style", "single", code=1)
    assert "GET endpoints" in refused.stderr
    refused = weekly("judge", "weekly", "--endpoint", "x", "--style", "best", "--set", "max_tokens=many", code=1)
    assert "body.style" in refused.stderr
    assert "body.settings.max_tokens" in refused.stderr
    refused = weekly("judge", "weekly", "--endpoint", "x", "--style", "single", "--set", "baseline", code=1)
    assert "--set baseline: is not of the form name=value" in refused.stderr
    for change in ("max_tokens: 5", "max_tokens=[", "max_tokens.=5"):
        assert f"--set {change}" in weekly("judge", "weekly", "--model", "m", "--set", change, code=1).stderr


def test_a_known_benchmark_comes_from_a_file_that_has_all_of_it(shell: Shell) -> None:
    eighty = [{"question_id": 81 + n, "category": "math", "turns": [f"question {n}", "and?"]} for n in range(80)]
    file = shell.file("question.jsonl", eighty)
    assert shell("import-prompts", file, "--known", "mt-bench-80").stdout.startswith(
        "mt-bench-80: 80 prompts of 2 turns"
    )
    single = shell("import-prompts", file, "--known", "vicuna-80", code=1)
    assert "80 prompts of 1 turns, but question.jsonl has 80 of 2" in single.stderr
    short = shell.file("short.jsonl", eighty[:79])
    refused = shell("import-prompts", short, "--known", "mt-bench-80", "--name", "again", code=1)
    assert ("other_prompts" in refused.stderr, "omit `known`" in refused.stderr) == (True, True)
    listed = shell("prompt-sets").stdout
    assert "again" not in listed
    assert "vicuna-80" in listed
    broken = shell("import-prompts", shell.file("broken.jsonl", [*eighty[:2], "{"]), code=1)
    assert "line 3" in broken.stderr
    assert "--bad-rows" not in broken.stderr
    assert "give a file, or --known" in shell("import-prompts", code=64).stderr
    assert "no_such_file" in shell("import-prompts", str(shell.folder / "gone.jsonl"), code=1).stderr


def test_verdicts_become_pairs_with_one_command(weekly: Shell) -> None:
    for model in ("vicuna", "alpaca"):
        answers = [answer(model, 81 + n, f"{model} {n}", f"{model} then {n}") for n in range(3)]
        weekly("import-answers", "weekly", weekly.file(f"{model}.jsonl", answers))
    assert "no judge has compared them" in weekly("pairs", "weekly", code=1).stderr
    for judge, scores in {"strict": (9, 3), "odd": (2, 4)}.items():
        rows = [
            rating(*arguments)
            for arguments in (("vicuna", 81, scores[0]), ("alpaca", 81, scores[1]), ("vicuna", 82, 5))
        ]
        weekly(
            "import-judgments", "weekly", weekly.file("some.jsonl", [*rows, rating("alpaca", 82, 1)]), "--name", judge
        )
    counted = weekly("pairs", "weekly", "--dry-run", "--train-all").stdout.splitlines()
    assert counted[0].startswith("4 pairs, ")
    assert counted[0].endswith("; from strict, odd")
    assert counted[1] == "  agreement 75% on average; votes differ on 1 of the compared answers"
    made = weekly("pairs", "weekly", "--majority", "--train-all").stdout.splitlines()
    assert made[0] == "Made weekly-preferences-1: 1 pairs (0 held out)"
    assert made[1:3] == ["  from judge strict", "  from judge odd"]
    rows = json.loads(weekly("pairs", "weekly", "--from", "judge:odd", "--name", "odd", "--json").stdout)
    assert (rows["name"], rows["rows"], rows["origin"]["sources"][0]["name"]) == ("odd-1", 2, "odd")
    assert "--from" in weekly("pairs", "weekly", "--from", "odd", code=64).stderr
    assert "unknown_judge" in weekly("pairs", "weekly", "--from", "judge:nobody", code=1).stderr


def test_pairs_that_leave_nothing_to_train_on_are_told_with_the_option_that_trains_on_them(
    weekly: Shell, world: FormatsWorld
) -> None:
    scores = {"vicuna": 9, "alpaca": 3}
    for model in scores:
        weekly("import-answers", "weekly", weekly.file("some.jsonl", [answer(model, 81, model, "more")]))
    rows = [rating(model, 81, score) for model, score in scores.items()]
    weekly("import-judgments", "weekly", weekly.file("rows.jsonl", rows), "--name", "strict")
    hint = "none is left to train on; --train-all trains on them"

    def printed(*options: str) -> list[str]:
        """Whether the pairs are counted or made."""
        return [weekly("pairs", "weekly", *options, *counted).stdout for counted in (["--dry-run"], [])]

    for held_out in (0.0, 1.0):
        with transaction(world.sessions) as session:
            session.execute(sa.update(Project).values(held_out_fraction=held_out))
        assert [hint in words for words in printed()] == [held_out == 1] * 2
    assert [hint in words for words in printed("--train-all")] == [False] * 2
