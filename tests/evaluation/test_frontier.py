"""An evaluation that names a model estimates how far its entrants are from it, from answers that were sampled."""

from __future__ import annotations

import math
from typing import Any

import pytest
from evaluation_world import SAMPLED, SHORT, EvaluationWorld
from sqlalchemy import select

from steerboard.evaluation.tables import Entrant, Response
from steerboard.platform.database import transaction
from steerboard.runs.state.sweeper import settle_all

LONG = {"temperature": 1.0, "max_new_tokens": 24}


def frontier(world: EvaluationWorld, name: str = "eval") -> dict[str, Any]:
    found: dict[str, Any] = world.get(f"evaluations/{name}/report")["frontier"]
    return {**found, "entrants": {one["entrant"]: one for one in found["entrants"]}}


def log_ratios(world: EvaluationWorld, entrant: str) -> list[float | None]:
    with transaction(world.sessions) as session:
        mine = (
            select(Response.log_ratio).join(Entrant, Entrant.id == Response.entrant_id).where(Entrant.name == entrant)
        )
        return list(session.scalars(mine.order_by(Response.position, Response.sample)))


def test_sampled_answers_give_an_estimate_and_greedy_ones_say_why_they_do_not(world: EvaluationWorld) -> None:
    world.evaluate(
        "eval",
        {"model": "sft", "decoding": LONG, "samples": 4},
        {"model": "dt", "decoding": LONG, "samples": 3},
        {"model": "dt", "decoding": SHORT, "name": "greedy"},
        {"model": "dt", "decoding": {**LONG, "top_p": 0.9}, "name": "cut"},
        kl_to="sft",
        rewards=["reward"],
    )
    assert world.detail()["kl_to"] == "sft"
    inputs = {
        run["name"]: {one["name"] for one in world.get(f"runs/{run['id']}")["inputs"]}
        for run in world.get("runs", kind="answer")["items"]
    }
    # Only where it is of use, and the model is not compared with itself.
    assert {name for name, given in inputs.items() if "kl_to" in given} == {"eval.dt_5"}
    world.work_off()
    ratios = log_ratios(world, "dt_5")
    assert len(ratios) == 6
    assert None not in ratios
    found = frontier(world)
    entrants = found["entrants"]
    assert found["kl_to"] == "sft"
    assert (entrants["sft"]["kind"], entrants["sft"]["kl"]["value"]) == ("same", 0.0)
    page = world.client.get(world.url("evaluations/eval/report.html")).text
    assert "KL to sft" in page
    assert "Best of n of sft by reward" in page
    estimate = entrants["dt_5"]["kl"]
    assert (entrants["dt_5"]["kind"], entrants["dt_5"]["why"], estimate["n"]) == ("estimate", None, 2)
    assert estimate["value"] == pytest.approx(sum(one for one in ratios if one is not None) / 6)
    assert "greedy" in entrants["greedy"]["why"]
    assert "top_p" in entrants["cut"]["why"]
    assert entrants["greedy"]["kl"]["value"] is entrants["cut"]["kl"]["value"] is None
    (curve,) = found["best_of_n"]
    assert (curve["entrant"], curve["reward_model"], curve["n"]) == ("sft", "reward", [1, 2, 4])
    assert curve["kl"] == pytest.approx([0.0, math.log(2) - 1 / 2, math.log(4) - 3 / 4])
    rewards = [one["value"] for one in curve["reward"]]
    assert rewards == sorted(rewards)


def test_equal_answers_are_taken_over_with_their_log_ratios(world: EvaluationWorld) -> None:
    asked = {"model": "dt", "decoding": SAMPLED}
    world.evaluate("eval", asked, kl_to="sft")
    assert world.work_off() == ["answer"]
    world.evaluate("again", asked, kl_to="sft")
    settle_all(world.sessions)
    assert world.work_off() == []
    assert frontier(world, "again")["entrants"]["dt_5"]["kl"] == frontier(world)["entrants"]["dt_5"]["kl"]
    # Without the model there is nothing to take over: no answer had a ratio.
    world.evaluate("plain", asked)
    assert world.work_off() == ["answer"]
    assert world.get("evaluations/plain/report")["frontier"] is None
    world.post("evaluations/again/entrants", {"model": "dt", "score": -5, "decoding": SAMPLED})
    world.work_off()
    assert frontier(world, "again")["entrants"]["dt_-5"]["kl"]["value"] is not None


def test_a_model_that_writes_no_answers_is_refused(world: EvaluationWorld) -> None:
    refused = world.evaluate("eval", kl_to="reward", status=422)
    assert refused["code"] == "wrong_role"
    assert world.evaluate("eval", kl_to="nobody", status=404)["code"] == "unknown_model"
