"""Generate runs whose model is an endpoint: the rows of a stage, from a server elsewhere."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from evaluation_world import EvaluationWorld
from test_evaluation_processes import LOCAL, add_endpoint, completion, kill_when

from steerboard.runs.tables import Run
from support.servers.other_server import Answer, OtherServer, Seen, other_server

GENERATE = {"run": "generate", "split": "all", "decoding": {"temperature": 0.7, "n": 2}, "batch_size": 4}
PROMPTS = [f"say {word}" for word in ("red", "green", "blue", "apple", "pear", "house")]


@pytest.fixture
def other() -> Iterator[OtherServer]:
    with other_server() as server:
        yield server


@pytest.fixture
def prompts(world: EvaluationWorld) -> EvaluationWorld:
    world.dataset("prompts", [{"prompt": prompt} for prompt in PROMPTS])
    return world


def start(world: EvaluationWorld, status: int = 201, model: str = "remote", **fields: Any) -> Any:
    body = {"config": {**GENERATE, **fields}, "inputs": {"model": model, "data": "prompts"}}
    return world.post("runs", body, status=status)


def made_by(world: EvaluationWorld, run: Run) -> list[tuple[str, str]]:
    """(prompt, response) of the dataset that a run made."""
    (output,) = world.get(f"runs/{run.id}")["outputs"]
    rows = world.get(f"datasets/{output['id']}/samples", limit=100)["items"]
    return [(row["sample"]["prompt"][0]["content"], row["sample"]["response"]) for row in rows]


def asked_of(seen: Seen) -> str:
    return str(seen.json["messages"][-1]["content"])


def test_an_endpoint_named_as_the_model_answers_every_row_n_times(prompts: EvaluationWorld, other: OtherServer) -> None:
    add_endpoint(prompts, other)
    lock, failed = threading.Lock(), set[str]()

    def answer(seen: Seen) -> Answer:
        with lock:
            if asked_of(seen) not in failed:  # each prompt fails once
                failed.add(asked_of(seen))
                return Answer.json({"error": {"message": "busy"}}, status=503)
        return completion(f" {seen.json['seed']}" if asked_of(seen) != "say blue" else " ")

    other.answer = answer
    started = start(prompts)
    assert started["config"]["endpoint"] == "remote"
    run = prompts.supervise(**LOCAL)
    assert run.state == "succeeded", run.reason
    assert run.summary == {"rows": 10, "empty": 2, "unfinished": 0, "tokens": 24, "resumed_rows": 0}
    rows = made_by(prompts, run)
    # In the order of the prompts, and an answer without a word is no sample.
    assert [prompt for prompt, _ in rows] == [prompt for prompt in PROMPTS if prompt != "say blue" for _ in range(2)]
    assert len({response for _, response in rows}) == 10, "each answer has a seed of its own"
    again = start(prompts)
    assert again["state"] == "queued", "what a server answers tomorrow is not known today, so nothing is taken over"


def test_guidance_is_sent_to_an_endpoint_that_takes_it_and_fails_a_run_of_another(
    prompts: EvaluationWorld, other: OtherServer
) -> None:
    add_endpoint(prompts, other)
    other.answer = lambda seen: completion("guided")
    start(prompts, decoding={"guidance": 3})
    run = prompts.supervise(**LOCAL)
    assert (run.state, run.reason_code) == ("failed", "no_guidance")
    assert other.seen == []
    prompts.client.patch("/api/v1/projects/default/endpoints/remote", json={"guides": True})
    start(prompts, decoding={"guidance": 3})
    run = prompts.supervise(**LOCAL)
    assert run.state == "succeeded", run.reason
    assert [seen.json["vllm_xargs"] for seen in other.seen] == [{"guidance": 3}] * len(PROMPTS)


@pytest.mark.long
def test_shards_ask_for_their_own_rows_and_make_one_dataset(prompts: EvaluationWorld, other: OtherServer) -> None:
    add_endpoint(prompts, other)
    other.answer = lambda seen: completion(f"you said {asked_of(seen)}")
    # What engine a config names means nothing to an endpoint, so none is missed.
    start(prompts, shards=2, decoding={"n": 1}, engine="vllm")
    runs = [prompts.supervise(**LOCAL, vllm_python=Path("/no/python")) for _ in range(3)]
    assert [run.state for run in runs] == ["succeeded"] * 3, [run.reason for run in runs]
    assert Counter(map(asked_of, other.seen)) == dict.fromkeys(PROMPTS, 1)
    assert made_by(prompts, runs[-1]) == [(prompt, f"you said {prompt}") for prompt in PROMPTS]


@pytest.mark.long
def test_a_killed_process_goes_on_and_asks_nothing_twice(prompts: EvaluationWorld, other: OtherServer) -> None:
    add_endpoint(prompts, other)
    released, answered = threading.Event(), list[str]()

    def answer(seen: Seen) -> Answer:
        if asked_of(seen) == "say house" and not released.is_set():
            released.wait(30)  # the kill comes now
            return Answer.json({}, status=503)
        answered.append(asked_of(seen))
        return completion(f"answer to {asked_of(seen)}")

    other.answer = answer
    run_id = start(prompts, decoding={"n": 1})["id"]
    killer = kill_when(prompts, run_id, b"answer to say pear")
    run = prompts.supervise(**LOCAL)
    killer.join()
    released.set()
    assert (run.state, run.reason_code) == ("queued", "stage_killed")
    run = prompts.supervise(**LOCAL)
    assert run.state == "succeeded", run.reason
    # Requests that were under way when it was killed may have been answered to no one.
    assert set(answered) == set(PROMPTS)
    assert [response for _, response in made_by(prompts, run)] == [f"answer to {prompt}" for prompt in PROMPTS]
    kept = Path(prompts.settings.home / "work" / run_id)
    assert not kept.exists()


def test_what_does_not_fit_an_endpoint_is_said_before_anything_starts(
    prompts: EvaluationWorld, other: OtherServer
) -> None:
    add_endpoint(prompts, other)

    def faults(problem: Any) -> set[str]:
        assert problem["code"] == "invalid_run"
        return {place["location"] for place in problem["errors"]}

    assert "inputs.model" in faults(start(prompts, 422, model="nobody"))
    assert faults(start(prompts, 422, model="sft", endpoint="remote")) == {"config.endpoint"}
    assert "config.endpoint" in faults(start(prompts, 422, model="sft", endpoint="nobody"))
    body = {"config": {"run": "generate", "prompts": ["hello"], "endpoint": "remote"}, "inputs": {}}
    assert faults(prompts.post("runs", body, status=422)) == {"config.endpoint"}


def test_a_score_that_the_served_policy_does_not_know_is_refused_and_nobody_is_asked(
    prompts: EvaluationWorld, other: OtherServer
) -> None:
    add_endpoint(prompts, other)
    start(prompts, score=5.0)
    run = prompts.supervise(**LOCAL)
    assert (run.state, run.reason_code) == ("failed", "no_score_format")
    assert other.seen == []
