"""The trace of a judge's call: what was sent, what came back, what it cost, and whether it was cached."""

from __future__ import annotations

from typing import Any

from judge_world import PROJECT, JudgeWorld, completion
from sqlalchemy import select, update

from steerboard.evaluation.judge_tables import JudgeAnswer
from steerboard.evaluation.tables import Entrant, Response
from steerboard.platform.database import transaction
from support.servers.other_server import Answer


def call(world: JudgeWorld, judge: str, verdict: dict[str, Any]) -> dict[str, Any]:
    url = f"{PROJECT}/evaluations/e/judges/{judge}/verdicts/{verdict['id']}/call"
    details: dict[str, Any] = world.client.get(url).raise_for_status().json()
    return details


def test_a_verdict_leads_to_the_request_that_was_sent_and_its_answer(world: JudgeWorld) -> None:
    world.evaluation()
    world.judged("pairwise", name="one", prompt_price=2.0, completion_price=8.0)
    verdicts = world.verdicts("one")
    assert len(verdicts) == 4
    sent = [seen.json for seen in world.server.seen]
    for verdict in verdicts:
        details = call(world, "one", verdict)
        assert (details["judge"], details["endpoint"], details["model"]) == ("one", "gpt-judge", "gpt-x")
        (same,) = [body for body in sent if body["messages"] == details["messages"]]
        assert (details["max_tokens"], details["temperature"]) == (same["max_tokens"], same["temperature"])
        assert details["no_messages"] is None
        assert details["answer"] == verdict["raw"]
        tokens = details["prompt_tokens"], details["completion_tokens"]
        assert details["cost"] == (tokens[0] * 2.0 + tokens[1] * 8.0) / 1_000_000
        assert (details["attempts"], details["cached"], details["paid_by"]) == (1, False, "one")
        assert details["seconds"] >= 0
        assert details["repeated"] is None


def test_the_trace_of_an_answer_has_the_calls_about_it(world: JudgeWorld) -> None:
    world.evaluation(prompts=1)
    world.judged("single", name="one", prompt_price=2.0, completion_price=8.0)
    verdict, _ = world.verdicts("one")
    details = call(world, "one", verdict)
    trace = world.client.get(f"{PROJECT}/evaluations/e/items/0/answers/{verdict['a']}").raise_for_status().json()
    (said,) = trace["verdicts"]
    assert (said["verdict"]["id"], said["verdict"]["judge"]) == (verdict["id"], "one")
    for name in ("prompt_tokens", "completion_tokens", "cost", "seconds", "cached"):
        assert said[name] == details[name]


def test_attempts_repeats_and_what_was_cached_are_told(world: JudgeWorld) -> None:
    world.evaluation(prompts=1, answer=lambda who, position, turn: "the same")
    refused = [503, 503]
    world.server.answer = lambda _: Answer(refused.pop()) if refused else completion("[[7]]")
    world.judged("single", name="one", repeat_share=1.0, concurrency=1)
    first, second = (call(world, "one", verdict) for verdict in world.verdicts("one"))
    assert (first["attempts"], first["cached"]) == (3, False)
    assert (second["cached"], second["paid_by"]) == (True, "one")
    assert first["repeated"] == {"status": "ok", "value": 7.0, "answer": "[[7]]"}
    world.judged("single", name="two")
    (again, _) = (call(world, "two", verdict) for verdict in world.verdicts("two"))
    assert (again["cached"], again["paid_by"], again["messages"]) == (True, "one", first["messages"])


def test_a_request_that_can_no_longer_be_put_together_is_not_guessed(world: JudgeWorld) -> None:
    world.evaluation(prompts=1)
    world.judged("single", name="one")
    (verdict, other) = world.verdicts("one")
    with transaction(world.sessions) as session:
        anna = session.scalar(select(Entrant.id).where(Entrant.name == verdict["a"]))
        session.execute(update(Response).where(Response.entrant_id == anna).values(turns=["something else"]))
    details = call(world, "one", verdict)
    assert details["messages"] is None
    assert details["no_messages"].startswith("Answers, entrants, the endpoint")
    assert details["answer"] == verdict["raw"]
    assert call(world, "one", other)["messages"]
    world.client.delete(f"{PROJECT}/endpoints/gpt-judge").raise_for_status()
    assert "endpoint was deleted" in call(world, "one", other)["no_messages"]


def test_an_error_shows_what_was_to_be_sent(world: JudgeWorld) -> None:
    world.evaluation(prompts=1)
    world.server.answer = lambda _: Answer(400)
    world.judged("multi", name="one", attempts=1)
    verdict = world.verdicts("one")[0]
    details = call(world, "one", verdict)
    assert (details["status"], details["answer"], details["cached"], details["cost"]) == ("error", None, False, None)
    assert "question 0?" in details["messages"][1]["content"]
    with transaction(world.sessions) as session:
        assert session.scalar(select(JudgeAnswer.key)) is None
