"""An LLM or a preference model as the judge of an evaluate stage: what it is asked, what it decides, what it costs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from evaluation_world import SHORT, WORDS, EvaluationWorld
from sqlalchemy import select
from test_evaluation_processes import LOCAL, add_endpoint, completion
from test_preference_judges import comparing  # noqa: F401  (a fixture)

from steerboard.platform.database import transaction
from steerboard.runs.tables import Run
from steerboard_contracts.report.kept import read_report
from support.servers.other_server import Answer, OtherServer, Seen, other_server

ANSWERS = re.compile(r"\[The Start of Assistant A's Answer\]\n(.*?)\n\[The End of Assistant A's Answer\]", re.DOTALL)
PROMPTS = 12


@pytest.fixture
def other() -> Iterator[OtherServer]:
    with other_server() as server:
        yield server


@pytest.fixture
def asked(world: EvaluationWorld) -> EvaluationWorld:
    rows = [{"prompt": f"say {word} {number}"} for word in WORDS for number in range(20)]
    world.dataset("asked", rows)
    return world


def start(world: EvaluationWorld, status: int = 201, entrants: int = 2, **fields: Any) -> Any:
    """A deciding stage of the same model, asked for a low and then for a high score, unless told otherwise."""
    config = {
        "run": "evaluate",
        "entrants": [{"scores": [score]} for score in (-5, 5)],
        "prompts": PROMPTS,
        "decoding": SHORT,
        "decides": True,
        **fields.pop("config", {}),
    }
    inputs = {f"entrants.{n}": "dt" for n in range(entrants)} | {"data": "asked", **fields}
    return world.post("runs", {"name": "check", "config": config, "inputs": inputs}, status=status)


def work_with(world: EvaluationWorld) -> None:
    """Answers here, the judge in a process of its own."""
    queued = select(Run.kind).where(Run.state == "queued").order_by(Run.position)
    while True:
        with transaction(world.sessions) as session:
            kind = session.scalar(queued)
        if kind is None:
            return
        if kind == "judge":
            world.supervise(**LOCAL)
        else:
            world.work()


def new_answers(world: EvaluationWorld) -> set[str]:
    return {turns[0] for (entrant, _, _), turns in world.responses("check").items() if entrant == "dt_5"}


def prefers(world: EvaluationWorld, *, new: bool) -> Any:
    """A judge that knows whose answer it is shown first; equal answers are a tie."""

    def answer(seen: Seen) -> Answer:
        (first,) = ANSWERS.findall(seen.json["messages"][-1]["content"])
        return completion("[[A]]" if (first in new_answers(world)) == new else "[[B]]")

    return answer


@pytest.mark.parametrize("new", [pytest.param(True, marks=pytest.mark.long), False])
def test_an_endpoint_decides_whether_a_round_fell_and_no_reward_model_is_needed(
    asked: EvaluationWorld, other: OtherServer, new: bool
) -> None:
    add_endpoint(asked, other)
    other.answer = prefers(asked, new=new)
    run = start(asked, config={"judge": {"endpoint": "remote", "criteria": "brevity"}})
    work_with(asked)
    ended = asked.get(f"runs/{run['id']}")
    assert ended["state"] == "succeeded", ended["reason"]
    assert len(other.seen) == 2 * PROMPTS
    assert "weigh above all: brevity" in other.seen[0].json["messages"][0]["content"]
    decision = asked.get("evaluations/check/report")["recipe"]["decision"]
    assert (decision["judge"], decision["units"], decision["prompts"]) == ("remote", "win_rate", PROMPTS)
    assert (decision["after"]["value"], decision["fell"]) == (float(new), not new)
    assert decision["p"] < 0.05
    (output,) = asked.get(f"runs/{run['id']}")["outputs"]
    report = read_report(output["document"])
    assert report.methods == []
    assert report.headline is not None
    assert report.headline.source == "remote"
    # What it was asked belongs to the stage, so that a stage that is cancelled asks no one.
    parts = {part["name"]: part["kind"] for part in asked.get(f"runs/{run['id']}")["shards"]}
    assert parts["check.remote"] == "judge"


@pytest.mark.long
def test_a_judge_that_says_nothing_decides_nothing(asked: EvaluationWorld, other: OtherServer) -> None:
    add_endpoint(asked, other)
    other.answer = lambda _: completion("Both are fine.")
    run = start(asked, config={"judge": {"endpoint": "remote"}})
    work_with(asked)
    ended = asked.get(f"runs/{run['id']}")
    assert (ended["state"], ended["reason_code"]) == ("failed", "unusable_input")
    assert ended["reason"] == "100% of the verdicts of judge remote are unusable, so there is nothing to decide by"
    assert "then resume the run" in ended["error"]["hint"]


def test_a_preference_model_decides_and_another_evaluation_shows_its_win_rates(
    asked: EvaluationWorld,
    comparing: Path,  # noqa: F811
) -> None:
    asked.register("compares", "compares")
    run = start(asked, judge="compares")
    asked.work_off()
    decision = asked.get("evaluations/check/report")["recipe"]["decision"]
    assert (decision["judge"], decision["units"]) == ("compares", "win_rate")
    judged = asked.get("evaluations/check/judges/compares/verdicts", limit=500)["items"]
    both: dict[int, list[float]] = {}
    for verdict in judged:
        both.setdefault(verdict["position"], []).append(
            verdict["value"] if verdict["a"] == "dt_5" else 1 - verdict["value"]
        )
    wins = [(sum(values) / 2 > 0.5) + (sum(values) / 2 == 0.5) / 2 for values in both.values()]
    assert decision["after"]["value"] == pytest.approx(sum(wins) / PROMPTS)
    assert asked.get(f"runs/{run['id']}")["state"] == "succeeded"

    second = start(
        asked,
        config={"decides": False, "entrants": [{}, {"scores": [5]}]},
        **{"entrants.0": "sft", "rewards.0": "reward", "judge": "compares"},
    )
    asked.work_off()
    (output,) = asked.get(f"runs/{second['id']}")["outputs"]
    rows = read_report(output["document"]).methods
    (pair,) = asked.get("evaluations/check-2/report")["judges"][0]["comparison"]["pairs"]
    ours = pair["win_rate"]["value"] if pair["a"] == "dt_5" else 1 - pair["win_rate"]["value"]
    assert [row.judge_win_rate_vs_baseline for row in rows] == [None, pytest.approx(ours)]


def test_a_stage_that_nobody_judges_is_refused(asked: EvaluationWorld, other: OtherServer) -> None:
    add_endpoint(asked, other)
    for config in ({}, {"decides": False, "judge": {"endpoint": "remote"}}):
        refused = start(asked, 422, config=config)
        assert [error["location"] for error in refused["errors"]] == ["inputs.rewards.0"]
    refused = start(asked, 422, config={"judge": {"endpoint": "nobody"}})
    assert [error["location"] for error in refused["errors"]] == ["config.judge.endpoint"]
    refused = start(asked, 422, config={"judge": {"endpoint": "remote"}}, judge="sft")
    assert {error["location"] for error in refused["errors"]} == {"inputs.judge"}
