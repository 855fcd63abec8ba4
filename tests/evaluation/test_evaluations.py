"""Evaluations from prompts to rewards: what is answered, when, and what is never done twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from evaluation_world import SAMPLED, SHORT, EvaluationWorld
from sqlalchemy import select, update

from steerboard.evaluation.tables import Response, RewardValue
from steerboard.platform.database import transaction
from steerboard.platform.events.tables import Event
from steerboard.platform.leases import LeaseLost
from steerboard.runs.tables import Run
from steerboard_contracts.errors import BadInput

NO_VLLM = {"vllm_python": Path("/no/python")}


def entrants(world: EvaluationWorld, name: str = "eval") -> dict[str, Any]:
    return {entrant["name"]: entrant for entrant in world.detail(name)["entrants"]}


def test_both_turns_are_answered_and_every_part_can_be_seen(world: EvaluationWorld) -> None:
    made = world.evaluate()
    assert (made["prompts"], made["turns"], made["entrants"], made["state"]) == (2, 2, ["sft"], "answering")
    assert world.detail()["unfinished"][0].startswith("the answers of sft wait: ")
    assert world.work_off() == ["answer"]
    responses = world.responses()
    assert sorted(responses) == [("sft", 0, 0), ("sft", 1, 0)]
    assert all(len(turns) == 2 for turns in responses.values())
    detail = world.detail()
    assert (detail["state"], detail["unfinished"]) == ("answered", [])
    (entrant,) = detail["entrants"]
    assert (entrant["responses"], entrant["missing"], entrant["family"]) == (2, 0, "llama")
    assert entrant["content_hash"] == world.get("models/sft")["content_hash"]
    assert [evaluation["name"] for evaluation in world.get("evaluations")["items"]] == ["eval"]
    assert world.get("models/sft")["in_evaluations"] == [{"id": made["id"], "name": "eval"}]


def test_its_runs_are_shown_among_the_others_with_their_evaluation(world: EvaluationWorld) -> None:
    made = world.evaluate()
    world.work_off()
    (shown,) = world.get("runs", kind="answer")["items"]
    assert (shown["name"], shown["kind"], shown["progress"]) == ("eval.sft", "answer", None)
    run = world.get(f"runs/{shown['id']}")
    assert run["config"]["evaluation"] == made["id"]
    assert (run["summary"]["responses"], run["summary"]["answers"]) == (2, 4)
    assert world.get("schemas/answer") == []
    refused = world.post(f"runs/{shown['id']}/clone", {}, status=422)
    assert "started by its evaluation" in refused["errors"][0]["message"]


def test_samples_differ_and_a_score_names_the_entrant(world: EvaluationWorld) -> None:
    world.evaluate("eval", {"model": "dt", "score": -5, "samples": 3, "decoding": SAMPLED}, {"model": "dt"})
    assert list(entrants(world)) == ["dt_-5", "dt_5"]
    assert entrants(world)["dt_-5"]["score"] == -5
    world.work_off()
    responses = world.responses()
    first = [responses[("dt_-5", 0, sample)] for sample in range(3)]
    assert len({str(turns) for turns in first}) == 3
    assert entrants(world)["dt_-5"]["responses"] == 6


def test_a_policy_of_two_attributes_enters_for_either_both_or_none(world: EvaluationWorld) -> None:
    world.register("steered", "steered")
    asked = ["verbosity:3", {"helpfulness": 1, "verbosity": 3}, "", None]
    world.evaluate("eval", *({"model": "steered", "score": condition, "decoding": SHORT} for condition in asked))
    assert {name: entrant["score"] for name, entrant in entrants(world).items()} == {
        "steered_verbosity3": "verbosity:3",
        "steered_helpfulness1_verbosity3": "helpfulness:1,verbosity:3",
        "steered_nothing": "",
        "steered_helpfulness4": "helpfulness:4",
    }
    world.work_off()
    assert world.detail()["state"] == "answered"
    answers = {entrant: turns for (entrant, prompt, _), turns in world.responses().items() if prompt == 0}
    assert len({str(turns) for turns in answers.values()}) == 4, "every condition changes the answers"
    rows = {row["name"]: row["score"] for row in world.get("evaluations/eval/report")["entrants"]}
    assert rows == {name: entrant["score"] for name, entrant in entrants(world).items()}
    rows = [json.loads(line) for line in world.client.get(world.url("evaluations/eval/answers")).text.splitlines()]
    exported = {row["model_id"]: row["condition"] for row in rows}
    assert exported == {name: entrant["score"] for name, entrant in entrants(world).items()}
    (run,) = [run for run in world.get("runs", kind="answer")["items"] if run["name"] == "eval.steered_helpfulness4"]
    assert world.get(f"runs/{run['id']}")["config"]["score"] == "helpfulness:4"


def test_reward_models_wait_for_all_answers_and_then_start_by_themselves(world: EvaluationWorld) -> None:
    world.evaluate("eval", {"model": "sft", "decoding": SHORT}, {"model": "dt", "decoding": SHORT}, rewards=["reward"])
    (assessment,) = world.detail()["reward_assessments"]
    assert (assessment["state"], assessment["values"]) == ("pending", 0)
    assert assessment["run"]["reason"].startswith("waiting for eval.sft, eval.dt_5")
    assert world.work_off() == ["answer", "answer", "reward"]
    (assessment,) = world.detail()["reward_assessments"]
    assert (assessment["state"], assessment["values"], assessment["responses"]) == ("succeeded", 4, 4)
    (first, _) = world.get("evaluations/eval/prompts")["items"]
    assert all(isinstance(response["rewards"]["reward"], float) for response in first["responses"])


def test_only_the_last_turn_is_scored_with_everything_before_it(world: EvaluationWorld) -> None:
    world.evaluate(rewards=["reward"])
    world.work()
    with transaction(world.sessions) as session:
        (same, other) = session.scalars(select(Response).order_by(Response.position)).all()
        same.turns = ["one", "the same"]
        other.turns = ["two", "the same"]
    assert world.work_off() == ["reward"]
    with transaction(world.sessions) as session:
        values = session.scalars(select(RewardValue.value)).all()
    assert len(set(values)) == 2


def test_an_entrant_that_comes_later_is_answered_and_scored_alone(world: EvaluationWorld) -> None:
    world.evaluate(rewards=["reward"])
    world.work_off()
    before = world.responses()
    added = world.post("evaluations/eval/entrants", {"model": "dt", "decoding": SHORT})
    assert (added["name"], added["run"]["state"]) == ("dt_5", "queued")
    assert world.work_off() == ["answer", "reward"]
    after = world.responses()
    assert {place: turns for place, turns in after.items() if place[0] == "sft"} == before
    (assessment,) = world.detail()["reward_assessments"]
    assert (assessment["values"], assessment["responses"]) == (4, 4)
    newest = world.get("runs", kind="reward")["items"][0]
    assert world.get(f"runs/{newest['id']}")["summary"]["responses"] == 2
    # Nothing is left to be scored, so asking again starts nothing.
    world.post("evaluations/eval/rewards", {"model": "reward"})
    assert world.work_off() == []


def engine_of(world: EvaluationWorld, made: Any) -> str:
    """The engine of what was started."""
    return str(world.get(f"runs/{made['run']['id']}")["config"]["engine"])


def test_an_entrant_is_answered_by_the_engine_that_it_names(world: EvaluationWorld) -> None:
    world.evaluate("eval", {"model": "sft", "engine": "vllm"})
    assert engine_of(world, entrants(world)["sft"]) == "vllm"
    run = world.supervise(**NO_VLLM)
    assert (run.name, run.state, run.reason_code) == ("eval.sft", "failed", "engine_missing")
    world.evaluate("other", {"model": "sft", "engine": "unheard-of"}, status=422)
    refused = world.evaluate("other", {"endpoint": "remote", "engine": "vllm"}, status=422)
    assert "an endpoint runs its own" in refused["errors"][0]["message"]


def test_rewards_stay_with_their_engine_until_another_is_named(world: EvaluationWorld) -> None:
    world.evaluate()
    world.work_off()

    def asked(**fields: str) -> str:
        return engine_of(world, world.post("evaluations/eval/rewards", {"model": "reward", **fields}))

    assert asked(engine="vllm") == "vllm"
    assert world.supervise(**NO_VLLM).reason_code == "engine_missing"
    assert asked() == "vllm"
    assert world.supervise(**NO_VLLM).reason_code == "engine_missing"
    assert asked(engine="transformers") == "transformers"
    assert world.work_off() == ["reward"]
    (assessment,) = world.detail()["reward_assessments"]
    assert (assessment["values"], assessment["responses"]) == (2, 2)


def test_imported_answers_are_scored_too(world: EvaluationWorld) -> None:
    world.evaluate(rewards=["reward"])
    world.work_off()
    rows = [
        {"question_id": 80 + n, "model_id": "gpt-4", "choices": [{"index": 0, "turns": ["red", f"blue {n}"]}]}
        for n in range(2)
    ]
    file = "".join(json.dumps(row) + "\n" for row in rows).encode()
    answer = world.client.post(world.url("evaluations/eval/answers"), files={"file": ("gpt-4.jsonl", file)})
    assert answer.status_code == 201, answer.text
    assert world.work_off() == ["reward"]
    (assessment,) = world.detail()["reward_assessments"]
    assert (assessment["values"], assessment["responses"]) == (4, 4)
    assert (entrants(world)["gpt-4"]["source"], entrants(world)["gpt-4"]["run"]) == ("import", None)


def test_held_out_pairs_of_its_training_data_tell_how_good_a_reward_model_is(world: EvaluationWorld) -> None:
    rows = [{"prompt": f"say {n}", "chosen": f"red {n}", "rejected": f"blue {n} {n}"} for n in range(80)]
    world.dataset("pairs", rows, "preferences")
    world.trained_on("reward", "pairs", method="reward_model")
    held_out = world.get("datasets/pairs")["held_out_rows"]
    world.evaluate(rewards=["reward"])
    world.work_off()
    (assessment,) = world.detail()["reward_assessments"]
    assert assessment["pairs"] == held_out > 0
    assert 0 <= assessment["accuracy"] <= 1
    assert assessment["normalised_by"] == "the held-out pairs of pairs"


def test_equal_answers_are_taken_over_and_others_are_not(world: EvaluationWorld) -> None:
    world.evaluate("one")
    world.work_off()
    again = world.evaluate("two", rewards=["reward"])
    assert again["state"] == "answered"
    assert entrants(world, "two")["sft"]["run"]["reason"].startswith("reused the outputs")
    assert world.responses("two") == world.responses("one")
    assert world.work_off() == ["reward"]
    # Another seed, another prompt, another decoding: nothing is taken over.
    world.prompt_set("other", [("say red", ["say blue"]), ("say apple", ["say tree"])])
    assert world.evaluate("three", seed=1)["state"] == "answering"
    assert world.evaluate("four", prompts={"set": "other"})["state"] == "answering"
    assert world.evaluate("five", {"model": "sft", "decoding": SAMPLED})["state"] == "answering"


def test_what_a_deleted_evaluation_had_made_is_made_again(world: EvaluationWorld) -> None:
    world.evaluate("one")
    world.work_off()
    assert world.client.delete(world.url("evaluations/one")).status_code == 204
    assert world.evaluate("two")["state"] == "answering"
    assert world.work_off() == ["answer"]


def test_a_failed_answer_fails_the_evaluation_until_it_is_resumed(world: EvaluationWorld) -> None:
    made = world.evaluate(rewards=["reward"])
    run = world.fail_next()
    detail = world.detail()
    assert detail["state"] == "failed"
    assert detail["unfinished"] == [
        "the answers of sft failed: It went wrong.",
        "the rewards by reward failed: upstream run eval.sft failed: It went wrong.",
    ]
    (item,) = world.get("waiting")["items"]
    assert (item["kind"], item["title"]) == ("failed_evaluation", "eval failed")
    assert item["detail"] == "eval.sft: It went wrong."
    assert item["link"] == {"page": "evaluation", "id": made["id"]}
    world.post(f"runs/{run.id}/resume", None, status=200)
    assert world.work_off() == ["answer", "reward"]
    assert (world.detail()["unfinished"], world.get("waiting")["items"]) == ([], [])


def test_a_cancelled_answer_run_is_said_to_be(world: EvaluationWorld) -> None:
    world.evaluate()
    run = entrants(world)["sft"]["run"]["id"]
    world.post(f"runs/{run}/cancel", None, status=200)
    assert world.detail()["unfinished"] == ["the answers of sft were cancelled: cancelled by token:test"]


def test_an_evaluation_that_is_deleted_meanwhile_takes_its_run_with_it(world: EvaluationWorld) -> None:
    world.evaluate()
    claim = world.claim()
    assert claim is not None
    assert world.client.delete(world.url("evaluations/eval")).status_code == 204
    with transaction(world.sessions) as session:
        run = session.get_one(Run, claim.run_id)
        assert run.cancel_requested_at is not None
    assert world.get("evaluations")["items"] == []


def test_every_change_raises_the_version_and_is_told(world: EvaluationWorld) -> None:
    versions = [world.evaluate(rewards=["reward"])["version"]]
    while world.work():
        versions.append(world.detail()["version"])
    answer = world.client.patch(world.url("evaluations/eval"), json={"name": "renamed", "description": "Ours."})
    assert (answer.json()["name"], answer.json()["description"]) == ("renamed", "Ours.")
    versions.append(answer.json()["version"])
    assert versions == sorted(set(versions))
    with transaction(world.sessions) as session:
        told = session.scalars(select(Event.payload).where(Event.type == "evaluation.changed").order_by(Event.id))
        assert [what for payload in told if (what := payload["what"]) != "run"] == [
            "rewards",  # asked for
            "created",
            "answers",
            "rewards",
            "name",
        ]


def test_answers_with_what_postgres_cannot_hold_are_kept_without_it(world: EvaluationWorld) -> None:
    world.evaluate()
    odd = "a\x00b \ud800 \u2028 \\N \t\n \U0001f600"

    def spoil(run: Run) -> None:
        (path,) = (world.settings.home / "work" / str(run.id)).glob("a*/outputs/responses.jsonl")
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        for row in rows:
            row["turns"][0] = odd
        # As json writes it: a lone surrogate is an escape, which is legal JSON.
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    world.work(before_end=spoil)
    assert {turns[0] for turns in world.responses().values()} == {"a\ufffdb ? \u2028 \\N \t\n \U0001f600"}


def test_too_few_responses_are_no_success(world: EvaluationWorld) -> None:
    world.evaluate()

    def lose_one(run: Run) -> None:
        (path,) = (world.settings.home / "work" / str(run.id)).glob("a*/outputs/responses.jsonl")
        path.write_text(path.read_text().splitlines()[0] + "\n")

    with pytest.raises(BadInput, match="2 responses were asked for, but 1 were made"):
        world.work(before_end=lose_one)
    assert world.responses() == {}


def test_a_superseded_attempt_writes_nothing(world: EvaluationWorld) -> None:
    world.evaluate()

    def lose_the_lease(run: Run) -> None:
        with transaction(world.sessions) as session:
            session.execute(update(Run).where(Run.id == run.id).values(attempt=Run.attempt + 1))

    with pytest.raises(LeaseLost):
        world.work(before_end=lose_the_lease)
    assert world.responses() == {}


def test_notices_tell_when_the_last_run_of_an_evaluation_has_ended(world: EvaluationWorld) -> None:
    events = ["evaluation.succeeded", "evaluation.failed"]
    world.post("notice-rules", {"name": "ci", "url": "https://ci.example/", "events": events})
    made = world.evaluate("eval", {"model": "sft"}, {"model": "dt", "score": 5})
    world.work()
    assert world.get("notice-rules/ci/deliveries")["items"] == []
    world.fail_next("bad_input")
    (told,) = world.get("notice-rules/ci/deliveries")["items"]
    assert (told["event"], told["payload"]["data"]["name"]) == ("evaluation.failed", "eval")
    assert told["payload"]["data"]["reason"] == "1 run failed, 1 run succeeded"
    assert told["payload"]["data"]["url"].endswith(f"/p/default/evaluations/{made['id']}")
