"""Answers in processes of their own: killed in the middle, and asked of an endpoint that has its moods."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from evaluation_world import SAMPLED, EvaluationWorld
from sqlalchemy import update

from steerboard.platform.database import transaction
from steerboard.runs.tables import Run
from support.patience import wait_until
from support.servers.other_server import Answer, OtherServer, Seen, other_server

KEY = "sk-very-secret"
LOCAL = {"allowed_private": "127.0.0.1"}


def processes_of(run_id: object) -> list[int]:
    """The processes of a run's attempts, except for their guardian."""
    mark = f"STEERBOARD_STAGE={run_id}:".encode()
    pids = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes() and b"guardian.py" not in (entry / "cmdline").read_bytes():
                pids.append(int(entry.name))
        except OSError:
            continue
    return pids


def kill_when(world: EvaluationWorld, run_id: object, enough: bytes) -> threading.Thread:
    """Kill the run's process once the file of its answers has `enough`."""
    kept = world.settings.home / "work" / str(run_id) / "checkpoints" / "a1-rows.jsonl"

    def work() -> None:
        wait_until(lambda: kept.is_file() and enough in kept.read_bytes())
        for pid in processes_of(run_id):
            os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


@pytest.mark.long
def test_a_killed_stage_resumes_and_gives_the_same_answers(world: EvaluationWorld) -> None:
    prompts = [(f"say {n} {'red ' * (n % 5)}", ["say blue"]) for n in range(40)]
    world.prompt_set("many", prompts)
    entrant = {"model": "sft", "decoding": {**SAMPLED, "max_new_tokens": 60}, "samples": 2}
    world.evaluate("undisturbed", entrant, prompts={"set": "many"})
    world.work()
    with transaction(world.sessions) as session:
        session.execute(update(Run).values(cache_key=None))  # or its answers would be taken over
    world.evaluate("disturbed", entrant, prompts={"set": "many"})
    run_id = world.detail("disturbed")["entrants"][0]["run"]["id"]
    killer = kill_when(world, run_id, b'"turn": 1')
    run = world.supervise()
    killer.join()
    assert (run.state, run.reason_code, run.attempt) == ("queued", "stage_killed", 1)
    assert world.responses("disturbed") == {}
    run = world.supervise()
    assert (run.state, run.attempt) == ("succeeded", 2), run.reason
    assert run.summary is not None
    assert run.summary["resumed_rows"] > 80
    assert run.progress == {"done": 160, "total": 160, "unit": "answers", "phase": "generating"}
    assert world.responses("disturbed") == world.responses("undisturbed")


@pytest.fixture
def other() -> Iterator[OtherServer]:
    with other_server() as server:
        yield server


def add_endpoint(world: EvaluationWorld, other: OtherServer, **fields: Any) -> None:
    body = {"name": "remote", "base_url": f"{other.url}/v1", "model": "gpt-test", "api_key": KEY, **fields}
    world.settings.allowed_private = "127.0.0.1"
    world.post("endpoints", body)


def change_endpoint(world: EvaluationWorld, endpoint: str, **fields: str) -> None:
    world.client.patch(world.url(f"endpoints/{endpoint}"), json=fields).raise_for_status()


def completion(text: str, reason: str = "stop") -> Answer:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": reason}
    return Answer.json({"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 2}})


def test_an_endpoint_answers_both_turns_though_it_fails_at_times(world: EvaluationWorld, other: OtherServer) -> None:
    add_endpoint(world, other)
    lock, failed = threading.Lock(), set[str]()

    def answer(seen: Seen) -> Answer:
        asked = seen.json["messages"][-1]["content"]
        with lock:
            if asked not in failed:  # each question fails once
                failed.add(asked)
                return Answer.json({"error": {"message": f"busy, {KEY}"}}, status=503)
        return completion(f" answer to {asked}", "length" if asked == "say pear" else "stop")

    other.answer = answer
    made = world.evaluate("eval", {"endpoint": "remote", "decoding": SAMPLED})
    assert made["entrants"] == ["remote"]
    run = world.supervise(**LOCAL)
    assert run.state == "succeeded", run.reason
    assert run.device_seconds == 0
    assert world.responses() == {
        ("remote", 0, 0): ["answer to say red", "answer to say blue"],
        ("remote", 1, 0): ["answer to say apple", "answer to say pear"],
    }
    (entrant,) = world.detail()["entrants"]
    assert (entrant["source"], entrant["endpoint"], entrant["family"]) == ("endpoint", "remote", "gpt")
    second = next(seen.json for seen in other.seen if seen.json["messages"][-1]["content"] == "say blue")
    assert [turn["role"] for turn in second["messages"]] == ["user", "assistant", "user"]
    assert second["messages"][1]["content"] == "answer to say red"
    assert (second["temperature"], second["max_tokens"], second["model"]) == (1.0, 6, "gpt-test")
    logs = world.get(f"runs/{run.id}/logs", limit=500)["items"]
    assert any("http_503" in line["message"] for line in logs)
    assert not any(KEY in line["message"] for line in logs)
    page = world.get("evaluations/eval/prompts")["items"][1]["responses"][0]
    assert (page["tokens"], page["finished"]) == ([2, 2], [True, False])


@pytest.mark.long
def test_a_killed_process_asks_nothing_again_that_was_answered(world: EvaluationWorld, other: OtherServer) -> None:
    add_endpoint(world, other)
    released, answered = threading.Event(), list[str]()

    def answer(seen: Seen) -> Answer:
        asked = seen.json["messages"][-1]["content"]
        if asked == "say blue" and not released.is_set():
            released.wait(30)  # the kill comes now
            return Answer.json({}, status=503)
        answered.append(asked)
        return completion(f"answer to {asked}")

    other.answer = answer
    world.evaluate("eval", {"endpoint": "remote"})
    run_id = world.detail()["entrants"][0]["run"]["id"]
    killer = kill_when(world, run_id, b"answer to say pear")
    run = world.supervise(**LOCAL)
    killer.join()
    released.set()
    assert (run.state, run.reason_code) == ("queued", "stage_killed")
    assert world.supervise(**LOCAL).state == "succeeded"
    assert sorted(answered) == ["say apple", "say blue", "say pear", "say red"]


def test_an_endpoint_that_refuses_fails_the_run_with_its_words(world: EvaluationWorld, other: OtherServer) -> None:
    add_endpoint(world, other)
    other.answer = lambda _: Answer.json({"error": {"message": f"key {KEY} is no good"}}, status=401)
    world.evaluate("eval", {"endpoint": "remote"})
    run = world.supervise(**LOCAL)
    assert (run.state, run.reason_code) == ("failed", "endpoint_gave_up")
    assert "401: key *** is no good" in run.reason
    assert world.detail()["state"] == "failed"


@pytest.mark.long
def test_an_entrant_answers_by_the_model_that_its_endpoint_had(world: EvaluationWorld, other: OtherServer) -> None:
    add_endpoint(world, other)
    other.answer = lambda _: completion("yes")
    for name in ("eval", "later"):
        world.evaluate(name, {"endpoint": "remote"})
    change_endpoint(world, "remote", model="another")
    assert world.supervise(**LOCAL).state == "succeeded"
    assert {seen.json["model"] for seen in other.seen} == {"gpt-test"}
    asked = len(other.seen)
    change_endpoint(world, "remote", base_url=f"{other.url}/v2", api_key=KEY)
    run = world.supervise(**LOCAL)
    assert (run.state, run.reason_code, len(other.seen)) == ("failed", "endpoint_changed", asked)


def test_a_score_is_asked_of_the_policy_that_an_endpoint_serves(world: EvaluationWorld, other: OtherServer) -> None:
    add_endpoint(world, other, policy_model="dt")
    add_endpoint(world, other, name="plain")
    refused = world.evaluate("no", {"endpoint": "plain", "score": 5}, status=422)
    assert refused["code"] == "no_score_format"
    other.answer = lambda _: completion("yes")
    assert world.evaluate("eval", {"endpoint": "remote", "score": -5})["entrants"] == ["remote_-5"]
    assert world.supervise(**LOCAL).state == "succeeded"
    assert {seen.json["chat_template_kwargs"]["rm_score"] for seen in other.seen} == {"-5.00"}
