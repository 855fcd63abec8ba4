"""An evaluation that names a model estimates how far its entrants are from it, from answers that were sampled."""

from __future__ import annotations

import math
from typing import Any

import pytest
from evaluation_world import SAMPLED, SHORT, EvaluationWorld
from sqlalchemy import func, select

from steerboard.evaluation.tables import Entrant, Response
from steerboard.platform.database import transaction
from steerboard.runs.state.sweeper import settle_all

LONG = {"temperature": 1.0, "max_new_tokens": 24}


def frontier(world: EvaluationWorld, name: str = "eval") -> dict[str, Any]:
    section: dict[str, Any] = world.get(f"evaluations/{name}/report")["frontier"]
    return {**section, "entrants": {entrant["entrant"]: entrant for entrant in section["entrants"]}}


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
        run["name"]: {input_["name"] for input_ in world.get(f"runs/{run['id']}")["inputs"]}
        for run in world.get("runs", kind="answer")["items"]
    }
    # All get a perplexity under it.
    assert {name for name, given in inputs.items() if "kl_to" in given} == set(inputs)
    world.work_off()
    # Only where it is of use, and the model is not compared with itself.
    names = ("sft", "dt_5", "greedy", "cut")
    assert [name for name in names if set(log_ratios(world, name)) != {None}] == ["dt_5"]
    ratios = log_ratios(world, "dt_5")
    assert len(ratios) == 6
    assert None not in ratios
    drawn = frontier(world)
    entrants = drawn["entrants"]
    assert drawn["kl_to"] == "sft"
    assert (entrants["sft"]["kind"], entrants["sft"]["kl"]["value"]) == ("same", 0.0)
    page = world.client.get(world.url("evaluations/eval/report.html")).text
    assert "KL to sft" in page
    assert "Best of n of sft by reward" in page
    estimate = entrants["dt_5"]["kl"]
    assert (entrants["dt_5"]["kind"], entrants["dt_5"]["why"], estimate["n"]) == ("estimate", None, 2)
    assert estimate["value"] == pytest.approx(sum(ratio for ratio in ratios if ratio is not None) / 6)
    assert "greedy" in entrants["greedy"]["why"]
    assert "top_p" in entrants["cut"]["why"]
    assert entrants["greedy"]["kl"]["value"] is entrants["cut"]["kl"]["value"] is None
    (curve,) = drawn["best_of_n"]
    assert (curve["entrant"], curve["reward_model"], curve["n"]) == ("sft", "reward", [1, 2, 4])
    assert curve["kl"] == pytest.approx([0.0, math.log(2) - 1 / 2, math.log(4) - 3 / 4])
    rewards = [point["value"] for point in curve["reward"]]
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


def perplexities(world: EvaluationWorld, name: str = "eval") -> dict[str, Any]:
    return {entrant["entrant"]: entrant for entrant in world.get(f"evaluations/{name}/report")["fluency"]["entrants"]}


def test_every_entrant_of_a_model_has_a_perplexity_however_it_answered(world: EvaluationWorld) -> None:
    world.prompt_set("one-turn", [(f"say {word}", []) for word in ("red", "apple", "tree")])
    ways: dict[str, dict[str, Any]] = {
        "greedy": {"decoding": SHORT},
        "sampled": {"decoding": SAMPLED, "samples": 2},
        "guided": {"decoding": {**SAMPLED, "guidance": 3.0}},
        "top_p": {"decoding": {**SAMPLED, "top_p": 0.5}},
        "best": {"decoding": SAMPLED, "best_of": 3, "reward": "reward"},
        "by_category": {"decoding": "by_category"},
    }
    entrants = [{"model": "dt", "name": name, **way} for name, way in ways.items()]
    world.evaluate(
        "eval",
        {"model": "sft", "decoding": SHORT},
        *entrants,
        kl_to="sft",
        prompts={"set": "one-turn"},
    )
    world.work_off()
    measured = perplexities(world)
    assert list(measured) == ["sft", *ways]
    assert [row["why"] for row in measured.values()] == [None] * 7
    for row in measured.values():
        assert row["perplexity"]["n"] == 3
        assert row["perplexity"]["value"] > 1
    with transaction(world.sessions) as session:
        rows = session.execute(
            select(func.sum(Response.log_prob), func.sum(Response.log_prob_tokens))
            .join(Entrant, Entrant.id == Response.entrant_id)
            .where(Entrant.name == "sampled")
        ).one()
    assert measured["sampled"]["perplexity"]["value"] == pytest.approx(math.exp(-rows[0] / rows[1]))
    # Greedily it writes what it finds likeliest.
    assert measured["sft"]["perplexity"]["value"] < measured["sampled"]["perplexity"]["value"]
    # Equal answers are taken over with their log-probs.
    world.evaluate("again", entrants[0], kl_to="sft", prompts={"set": "one-turn"})
    settle_all(world.sessions)
    assert world.work_off() == []
    assert perplexities(world, "again")["greedy"]["perplexity"] == measured["greedy"]["perplexity"]
    # Without a model to read them by, nothing is read.
    world.evaluate("plain", entrants[0], prompts={"set": "one-turn"})
    world.work_off()
    assert perplexities(world, "plain")["greedy"]["perplexity"]["value"] is None
    assert perplexities(world, "plain")["greedy"]["empty"] == measured["greedy"]["empty"]
