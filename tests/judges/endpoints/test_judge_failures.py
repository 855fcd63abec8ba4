"""Endpoints that refuse, break or vanish, and processes that lose their lease."""

from __future__ import annotations

import uuid

import pytest
from judge_world import PROJECT, SECRET, JudgeWorld, completion, saying
from sqlalchemy import update

from steerboard.evaluation.judge_tables import JudgeAnswer, Verdict
from steerboard.platform.database import transaction
from steerboard.platform.leases import LeaseLost
from steerboard.runs.state import lifecycle
from steerboard.runs.tables import Run
from support.servers.other_server import Answer, Seen


def test_every_failure_is_counted_and_what_fails_for_good_is_an_error_with_its_code(world: JudgeWorld) -> None:
    world.evaluation(prompts=4)
    tries: dict[str, int] = {}

    def moody(seen: Seen) -> Answer:
        prompt = seen.json["messages"][1]["content"]
        tries[prompt] = tries.get(prompt, 0) + 1
        if "anna says 0" in prompt:
            return Answer.json({"error": {"message": f"too long for {SECRET}"}}, 422)
        if "anna says 1" in prompt and tries[prompt] < 3:
            return Answer.json({}, 500)
        if "anna says 2" in prompt and tries[prompt] < 2:
            return Answer(429, [], {"Retry-After": "0.01", "Content-Length": "0"})
        if "anna says 3" in prompt:
            return Answer(200, [b"<html>"], {"Content-Type": "text/html"})
        return completion("I'm sorry, but I can't." if "bert says 0" in prompt else "Rating: [[3]]")

    world.server.answer = moody
    judge = world.judged("single", name="one", attempts=3)
    assert (judge["ok"], judge["refused"], judge["errors"], judge["unparsed"]) == (5, 1, 2, 0)
    assert judge["failures"] == {"http_422": 1, "http_500": 2, "http_429": 1, "nonsense": 3}
    assert (judge["requests"], judge["valid"]) == (6, False)
    errors = {row["position"]: row["detail"] for row in world.verdicts("one", status="error")}
    assert errors == {
        0: "http_422: the endpoint answered 422: too long for ***",
        3: "nonsense: the answer is not a chat completion",
    }
    run = world.run(judge["run"]["id"])
    assert run.summary is not None
    assert run.summary["failed_requests"] == judge["failures"]
    assert run.summary["without_verdict"] == 1, "the refusal"


def test_a_retry_asks_again_what_ended_in_an_error_and_nothing_else(world: JudgeWorld) -> None:
    world.evaluation(prompts=3)
    broken = True

    def server(seen: Seen) -> Answer:
        if broken and "anna says 1" in seen.json["messages"][1]["content"]:
            return Answer.json({}, 500)
        return completion("Rating: [[3]]")

    world.server.answer = server
    judge = world.judged("single", name="one", attempts=2)
    assert (judge["ok"], judge["errors"], len(world.server.seen)) == (5, 1, 7)
    broken = False
    answer = world.client.post(f"{PROJECT}/evaluations/e/judges/one/retry")
    assert (answer.status_code, answer.json()["state"]) == (200, "queued")
    refused = world.client.post(f"{PROJECT}/evaluations/e/judges/one/retry")
    assert (refused.status_code, refused.json()["code"]) == (409, "judge_at_work")
    world.work()
    judge = world.look("one")
    assert (judge["ok"], judge["errors"], judge["verdicts"], judge["requests"], judge["cached"]) == (6, 0, 6, 6, 0)
    assert len(world.server.seen) == 8


def test_an_endpoint_that_is_not_there_fails_the_run_and_a_resumed_one_goes_on(world: JudgeWorld) -> None:
    world.evaluation(prompts=20)
    asked = 0

    def dies(_: Seen) -> Answer:
        nonlocal asked
        asked += 1
        return completion("Rating: [[3]]") if asked <= 10 else Answer.json({"error": "bad key"}, 401)

    world.server.answer = dies
    judge = world.judged("single", name="one", concurrency=1)
    assert judge["state"] == "failed"
    assert judge["run"]["reason"] == ("The endpoint stopped answering: http_401: the endpoint answered 401: bad key")
    assert (judge["ok"], judge["errors"], judge["failures"], asked) == (10, 10, {"http_401": 10}, 20)
    world.server.answer = saying("Rating: [[3]]")
    with transaction(world.sessions) as session:
        lifecycle.resume(session, session.get_one(Run, uuid.UUID(judge["run"]["id"])), "tester")
    said = world.work()
    assert {"type": "log", "level": "info", "message": "10 of 40 requests are judged already"} in said
    judge = world.look("one")
    assert (judge["state"], judge["ok"], judge["errors"], judge["requests"]) == ("succeeded", 40, 0, 40)
    assert len(world.server.seen) == 20 + 30


def test_a_run_with_no_answer_at_all_has_not_succeeded(world: JudgeWorld) -> None:
    world.evaluation(prompts=1)
    world.server.answer = lambda _: Answer.json({}, 403)
    judge = world.judged("single", name="one")
    assert (judge["state"], judge["errors"]) == ("failed", 2)
    assert "http_403" in judge["run"]["reason"]


def test_a_deleted_endpoint_is_said_so(world: JudgeWorld) -> None:
    world.evaluation(prompts=1)
    world.judge("single", name="one")
    assert world.client.delete(f"{PROJECT}/endpoints/gpt-judge").status_code == 204
    world.work()
    judge = world.look("one")
    assert (judge["state"], judge["endpoint"]) == ("failed", None)
    assert judge["run"]["reason"] == "the judge's endpoint was deleted"


def test_a_process_that_has_lost_its_lease_writes_no_verdict_but_keeps_what_it_paid_for(world: JudgeWorld) -> None:
    world.evaluation(prompts=1, entrants=("anna",))
    judge = world.judge("single", name="one")

    def takes_over(_: Seen) -> Answer:
        with transaction(world.sessions) as session:
            session.execute(update(Run).values(attempt=Run.attempt + 1))
        return completion("Rating: [[3]]")

    world.server.answer = takes_over
    with pytest.raises(LeaseLost):
        world.work()
    assert (world.count(Verdict), world.count(JudgeAnswer)) == (0, 1)
    assert world.look("one")["requests"] == 1
    assert judge["state"] == "queued"
