"""The blocks of docs/evaluation.md: answers of models, endpoints and files, judges, juries, people and arenas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from page_blocks import Named, runs
from reader import QUESTIONS, Reader

from support.patience import wait_until
from support.servers.other_server import Answer, OtherServer

PAGE = "evaluation.md"


def judgments(reader: Reader, judge: str) -> Any:
    return next(
        verdicts for verdicts in reader.get("evaluations/weekly/report")["judges"] if verdicts["judge"] == judge
    )


@pytest.mark.long
@runs(
    Named(PAGE, "steerboard evaluations import-prompts questions.jsonl"),
    Named(PAGE, "steerboard evaluations judge weekly --model prefers"),
    Named(PAGE, "steerboard evaluations jury"),
    Named(PAGE, "steerboard evaluations pairs"),
)
def test_an_evaluation_goes_from_questions_to_a_report_a_jury_and_pairs(
    reader: Reader, blocks: list[Named], model_folders: Path, chat_server: OtherServer
) -> None:
    whole, preferred, jury, pairs = blocks
    reader.models(model_folders, our_sft="sft", prefers="preference")
    for name in ("gpt", "other"):
        reader.endpoint(name, chat_server.url)
    judged = {"judge": ["gpt-4", "single-v1"], "judgment": "[[7]]", "score": 7, "turn": 1}
    reader.write("questions.jsonl", QUESTIONS)
    answers = [{"question_id": n, "model_id": "vicuna-13b", "text": "Something else."} for n in range(6)]
    reader.write("vicuna-13b.jsonl", answers)
    scores = [{"question_id": n, "model": model, **judged} for n in range(6) for model in ("vicuna-13b", "sft")]
    reader.write("gpt-4_single.jsonl", scores)

    printed = reader.shell(whole)
    assert "gpt-pairwise: succeeded, 12 verdicts, 12 requests and 0 cached answers, 1,200 + 36 tokens" in printed
    assert "entrant sft: 6 answers\n" in printed
    assert json.loads((reader.folder / "report.json").read_text())["baseline"] == "sft"
    games = [json.loads(line) for line in (reader.folder / "verdicts.jsonl").read_text().splitlines()]
    assert {(game["g1_winner"], game["g2_winner"]) for game in games} == {("model_1", "model_2")}
    figures = json.loads(printed[printed.index('{\n  "format"') :])
    assert {model["model"] for model in figures["models"]} == {"vicuna-13b", "sft"}

    assert "prefers-preference: succeeded, 12 verdicts" in reader.shell(preferred)

    reader.shell("steerboard evaluations judge weekly --endpoint other --style pairwise --wait")
    assert "panel: majority of " in reader.shell(jury)
    (panel,) = reader.get("evaluations/weekly/report")["juries"]
    assert panel["judges"] == ["gpt-pairwise", "prefers-preference", "other-pairwise"]

    rank(reader)
    count, *make = pairs.text.splitlines()
    assert "12 pairs, " in reader.shell(count)
    reader.shell(*make)
    names = [dataset["name"] for dataset in reader.get("datasets")["items"]]
    assert sorted(names) == ["weekly-preferences-1", "weekly-preferences-2"]


def rank(reader: Reader) -> None:
    """Ranks the answers of all questions, the first one best."""
    reader.shell("steerboard evaluations rank weekly")
    (campaign,) = reader.get("rankings")["campaigns"]
    assert campaign["name"] == "ranking-1"
    for number in range(len(QUESTIONS)):
        (task,) = reader.post(f"rankings/{campaign['id']}/next", {})["items"]
        body = {"ranks": [1, 2], "seconds": 2, "submission": f"submission-{number}"}
        reader.post(f"rankings/tasks/{task['id']}/submit", body)


@pytest.mark.long
@runs(Named(PAGE, "steerboard evaluations judge weekly --endpoint gpt --style pairwise \\\n"))
def test_a_judge_has_prices_and_a_budget_that_can_be_raised(
    reader: Reader, blocks: list[Named], chat_server: OtherServer
) -> None:
    answered(reader, chat_server)
    assert "gpt-pairwise: a budget of 8" in reader.shell(*blocks)
    judge = judgments(reader, "gpt-pairwise")
    # Each of 12 questions is asked again with a probability of a tenth; a request has 100 and 3 tokens.
    requests = round(judge["quality"]["cost"] / (100 * 2.5e-6 + 3 * 10e-6))
    assert 12 <= requests == len(chat_server.seen)


@pytest.mark.long
@runs(Named(PAGE, "steerboard evaluations judge weekly --endpoint gpt --style rubric"))
def test_a_rubric_is_written_on_the_command_line(reader: Reader, blocks: list[Named], chat_server: OtherServer) -> None:
    answered(reader, chat_server)
    message = {"role": "assistant", "content": "1: yes\n2: no"}
    chat_server.answer = lambda _: Answer.json({"choices": [{"index": 0, "message": message}]})
    reader.shell(*blocks)
    scores = judgments(reader, "gpt-rubric")["comparison"]["scores"]
    assert [score["mean"]["value"] for score in scores] == [7.75, 7.75]


def answered(reader: Reader, chat_server: OtherServer) -> None:
    """An evaluation `weekly` with the answers of two entrants, and the endpoint `gpt`."""
    reader.endpoint("gpt", chat_server.url)
    reader.write("questions.jsonl", QUESTIONS)
    for name in ("one", "two"):
        answers = [{"question_id": n, "model_id": name, "text": f"Answer {name}."} for n in range(6)]
        reader.write(f"{name}.jsonl", answers)
    reader.shell(
        "steerboard evaluations import-prompts questions.jsonl --name mine",
        "steerboard evaluations create weekly --prompt-set mine",
        *(f"steerboard evaluations import-answers weekly {name}.jsonl" for name in ("one", "two")),
    )


@pytest.mark.long
@runs(Named(PAGE, "steerboard evaluations create weekly --prompt-set mine --kl-to our-sft"))
def test_an_evaluation_estimates_how_far_each_policy_is_from_sft(
    reader: Reader, blocks: list[Named], model_folders: Path
) -> None:
    reader.models(model_folders, our_sft="sft", our_dpo="policy", our_dt="policy", rm="reward")
    reader.write("questions.jsonl", QUESTIONS)
    reader.shell("steerboard evaluations import-prompts questions.jsonl --name mine", *blocks)
    reader.shell("steerboard evaluations wait weekly")
    frontier = reader.get("evaluations/weekly/report")["frontier"]
    entrants = {entrant["entrant"]: entrant for entrant in frontier["entrants"]}
    assert (frontier["kl_to"], len(entrants)) == ("our-sft", 3)
    kinds = {name.removesuffix("_5"): entrant["kl"] for name, entrant in entrants.items()}
    assert kinds["our-sft"]["value"] == 0
    assert all(kinds[name]["value"] > 0 for name in ("our-dpo", "our-dt"))
    fluency = reader.get("evaluations/weekly/report")["fluency"]
    assert fluency["perplexity_by"] == "our-sft"
    assert all(entrant["perplexity"]["value"] > 1 for entrant in fluency["entrants"])


@runs(Named(PAGE, "steerboard arena list"))
def test_votes_of_an_arena_become_ratings_a_file_and_pairs(
    reader: Reader, blocks: list[Named], chat_server: OtherServer
) -> None:
    names = ("our-sft", "our-dpo")
    for name in names:
        reader.endpoint(name, chat_server.url)
    reader.post("arenas", {"name": "weekly", "entrants": [{"endpoint": name} for name in names]})
    for number in range(6):
        vote(reader, f"Question {number}?", "ab"[number % 2])
    vote(reader, "Question 6?", "tie")  # Sides are drawn: a model that wins nothing at all would have no rating.
    printed = reader.shell(*blocks)
    assert "weekly\topen\t7\t2" in printed
    assert "Made weekly-preferences-1: 6 pairs" in printed
    board = json.loads(reader.shell("steerboard arena leaderboard weekly --json"))
    assert json.loads(reader.shell("steerboard figures battles.jsonl --json"))["models"] == board["models"]
    assert {model["model"] for model in board["models"]} == set(names)


def vote(reader: Reader, question: str, verdict: str) -> None:
    battle = reader.post("arenas/weekly/battles", {"prompt": question})

    def has_answers() -> bool:
        states = {side["state"] for side in reader.get(f"battles/{battle['id']}")["turns"][0]["sides"]}
        assert "failed" not in states
        return states == {"succeeded"}

    wait_until(has_answers, pause=0.1)
    reader.post(f"battles/{battle['id']}/vote", {"verdict": verdict, "submission": str(battle["id"])})
