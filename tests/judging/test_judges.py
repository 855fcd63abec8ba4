"""Judges from the API to their verdicts, against a server that answers as each test says."""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from judging_world import PROJECT, SECRET, JudgingWorld, completion, saying
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from other_server import Answer, Seen
from steerboard.evaluation.judging import runner
from steerboard.evaluation.tables import Entrant, Evaluation, Judge, JudgeAnswer, Response, Verdict
from steerboard.platform.database import transaction
from steerboard.runs import claims, endings, lifecycle
from steerboard.runs.tables import Run
from steerboard_contracts.configs import RUN_CONFIG
from steerboard_workers.supervisor.device_group import DeviceGroup
from steerboard_workers.worker import Worker


def post(world: JudgingWorld, body: dict[str, Any], evaluation: str = "e", **params: Any) -> Any:
    return world.client.post(f"{PROJECT}/evaluations/{evaluation}/judges", json=body, params=params)


def version(world: JudgingWorld) -> int:
    with transaction(world.sessions) as session:
        return session.scalars(select(Evaluation.version)).one()


# -- styles, from the question to the rows ----------------------------------------------------------------------------


def test_single_answers_are_graded_in_both_turns(world: JudgingWorld) -> None:
    world.evaluation(turns=2)
    world.server.answer = lambda seen: completion(
        "Rating: [[9.5]]" if "anna says" in seen.json["messages"][1]["content"] else "Rating: [[4]]"
    )
    judge = world.judged("single", name="one")
    assert (judge["state"], judge["verdicts"], judge["ok"], judge["requests"], judge["cached"]) == (
        "succeeded",
        8,
        8,
        8,
        0,
    )
    assert (judge["prompt_tokens"], judge["completion_tokens"]) == (800, 56)
    assert (judge["valid"], judge["unparsed_rate"], judge["failures"]) == (True, 0.0, {})
    assert (judge["model"], judge["family"], judge["endpoint"]) == ("gpt-x", "gpt", "gpt-judge")
    found = {(row["a"], row["position"], row["turn"]): row["value"] for row in world.verdicts("one")}
    assert found == {
        (who, position, turn): score
        for who, score in (("anna", 9.5), ("bert", 4.0))
        for position in (0, 1)
        for turn in (1, 2)
    }
    assert {row["raw"] for row in world.verdicts("one", position=1)} == {"Rating: [[9.5]]", "Rating: [[4]]"}
    run = world.run(judge["run"]["id"])
    assert (run.kind, run.device_seconds, run.summary and run.summary["verdicts"]) == ("judge", 0.0, {"ok": 8})


def test_a_multi_verdict_is_one_request_with_a_row_for_everybody(world: JudgingWorld) -> None:
    world.evaluation(entrants=("anna", "bert", "carl"), prompts=3)
    world.server.answer = saying("Assistant A: 9\nAssistant B: 5\nAssistant C: nine")
    judge = world.judged("multi", name="all")
    assert (judge["requests"], judge["verdicts"], judge["ok"], judge["unparsed"]) == (3, 9, 6, 3)
    assert (judge["valid"], judge["unparsed_rate"]) == (False, pytest.approx(1 / 3))
    for position in range(3):
        rows = {row["a"]: row for row in world.verdicts("all", position=position)}
        shown = world.server.seen[[f"question {position}?" in prompt for prompt in world.prompts_seen].index(True)]
        order = sorted(rows, key=lambda who: shown.json["messages"][1]["content"].index(f"{who} says"))
        assert [rows[who]["value"] for who in order] == [9.0, 5.0, None]
        assert [rows[who]["a_first"] for who in order] == [True, False, False]


def test_pairs_are_judged_in_both_orders_and_a_judge_that_likes_the_first_flips(world: JudgingWorld) -> None:
    world.evaluation(prompts=1)
    world.server.answer = saying("[[A]]")
    judge = world.judged("pairwise", name="pairs")
    assert judge["requests"] == 2
    assert [(row["a"], row["b"], row["a_first"], row["value"]) for row in world.verdicts("pairs")] in (
        [("anna", "bert", False, 0.0), ("anna", "bert", True, 1.0)],
        [("anna", "bert", True, 1.0), ("anna", "bert", False, 0.0)],
    )


def test_alpaca_eval_takes_weights_where_the_endpoint_has_them_and_the_letter_where_not(world: JudgingWorld) -> None:
    world.evaluation(prompts=6)
    weights = {"content": [{"top_logprobs": [{"token": "m", "logprob": -1.0}, {"token": "M", "logprob": -1.0}]}]}
    world.server.answer = lambda _: completion("M", logprobs=weights)
    judge = world.judged("alpaca_eval", name="weighted", baseline="bert")
    assert (judge["requests"], judge["ok"]) == (6, 6)
    assert {row["value"] for row in world.verdicts("weighted")} == {0.5}

    def without_weights(seen: Seen) -> Answer:
        if "logprobs" in seen.json:
            return Answer.json({"error": {"message": "logprobs are not supported"}}, 400)
        prompt = seen.json["messages"][1]["content"]
        return completion("m" if "anna says" in prompt[: prompt.index("<answer_M>")] else "M")

    world.server.answer = without_weights
    judge = world.judged("alpaca_eval", name="worded", baseline="bert", criteria="wit", concurrency=1)
    assert (judge["ok"], judge["failures"]) == (6, {"http_400": 1})
    assert {row["value"] for row in world.verdicts("worded")} == {1.0}
    assert {(row["a"], row["b"]) for row in world.verdicts("worded")} == {("anna", "bert")}


def test_arena_hard_keeps_value_and_weight(world: JudgingWorld) -> None:
    world.evaluation(prompts=1)
    world.server.answer = lambda seen: completion(
        "[[A>>B]]" if "anna says" in seen.json["messages"][1]["content"].split("Assistant B")[0] else "[[B>A]]"
    )
    world.judged("arena_hard", name="arena", baseline="bert")
    found = {(row["a_first"], row["value"], row["weight"]) for row in world.verdicts("arena")}
    assert found == {(True, 1.0, 3), (False, 1.0, 1)}


# -- what goes wrong --------------------------------------------------------------------------------------------------


def test_every_failure_is_counted_and_what_fails_for_good_is_an_error_with_its_code(world: JudgingWorld) -> None:
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


def test_a_retry_asks_again_what_ended_in_an_error_and_nothing_else(world: JudgingWorld) -> None:
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


def test_an_endpoint_that_is_not_there_fails_the_run_and_a_resumed_one_goes_on(world: JudgingWorld) -> None:
    world.evaluation(prompts=20)
    asked = 0

    def dies(_: Seen) -> Answer:
        nonlocal asked
        asked += 1
        return completion("Rating: [[3]]") if asked <= 10 else Answer.json({"error": "bad key"}, 401)

    world.server.answer = dies
    judge = world.judged("single", name="one", concurrency=1)
    assert judge["state"] == "failed"
    assert judge["run"]["reason"] == ("The endpoint answers no more: http_401: the endpoint answered 401: bad key")
    assert (judge["ok"], judge["errors"], judge["failures"], asked) == (10, 10, {"http_401": 10}, 20)
    world.server.answer = saying("Rating: [[3]]")
    with transaction(world.sessions) as session:
        lifecycle.resume(session, session.get_one(Run, uuid.UUID(judge["run"]["id"])), "tester")
    said = world.work()
    assert {"type": "log", "level": "info", "message": "10 of 40 requests are judged already"} in said
    judge = world.look("one")
    assert (judge["state"], judge["ok"], judge["errors"], judge["requests"]) == ("succeeded", 40, 0, 40)
    assert len(world.server.seen) == 20 + 30


def test_a_run_with_no_answer_at_all_has_not_succeeded(world: JudgingWorld) -> None:
    world.evaluation(prompts=1)
    world.server.answer = lambda _: Answer.json({}, 403)
    judge = world.judged("single", name="one")
    assert (judge["state"], judge["errors"]) == ("failed", 2)
    assert "http_403" in judge["run"]["reason"]


def test_a_deleted_endpoint_is_said_so(world: JudgingWorld) -> None:
    world.evaluation(prompts=1)
    world.judge("single", name="one")
    assert world.client.delete(f"{PROJECT}/endpoints/gpt-judge").status_code == 204
    world.work()
    judge = world.look("one")
    assert (judge["state"], judge["endpoint"]) == ("failed", None)
    assert judge["run"]["reason"] == "the judge's endpoint was deleted"


def test_a_process_that_has_lost_its_lease_writes_no_verdict_but_keeps_what_it_paid_for(world: JudgingWorld) -> None:
    world.evaluation(prompts=1, entrants=("anna",))
    judge = world.judge("single", name="one")

    def takes_over(_: Seen) -> Answer:
        with transaction(world.sessions) as session:
            session.execute(update(Run).values(attempt=Run.attempt + 1))
        return completion("Rating: [[3]]")

    world.server.answer = takes_over
    with pytest.raises(claims.LeaseLost):
        world.work()
    assert (world.count(Verdict), world.count(JudgeAnswer)) == (0, 1)
    assert world.look("one")["requests"] == 1
    assert judge["state"] == "queued"


# -- what is paid for -------------------------------------------------------------------------------------------------


def test_equal_requests_are_paid_for_once_in_a_project(world: JudgingWorld) -> None:
    # Both say the same to the first prompt; in the other evaluation one of four answers is another one.
    world.evaluation("e", answer=lambda who, position, _: f"{who} says {position}" if position else "the same")
    world.evaluation("f", answer=lambda who, position, _: f"{who} says {position}" if position else "the same")
    with transaction(world.sessions) as session:
        changed = select(Response).join(Entrant, Entrant.id == Response.entrant_id)
        evaluation = select(Evaluation.id).where(Evaluation.name == "f").scalar_subquery()
        session.scalars(
            changed.where(Entrant.evaluation_id == evaluation, Entrant.name == "bert", Response.position == 1)
        ).one().turns = ["something else"]
    body = {"style": "single", "endpoint": "gpt-judge"}
    assert post(world, body, dry_run=True).json() == {"requests": 4, "cached": 1}
    judge = world.judged("single", name="one")
    assert (judge["requests"], judge["cached"], judge["verdicts"]) == (3, 1, 4)
    assert post(world, body, dry_run=True).json() == {"requests": 4, "cached": 4}
    again = world.judged("single", name="two")
    assert (again["requests"], again["cached"], again["prompt_tokens"]) == (0, 4, None)
    assert len(world.server.seen) == 3
    assert post(world, body, "f", dry_run=True).json() == {"requests": 4, "cached": 3}
    other = world.judged("single", name="one", evaluation="f")
    assert (other["requests"], other["cached"], other["verdicts"]) == (1, 3, 4)
    assert len(world.server.seen) == 4


def test_what_was_answered_before_the_process_died_is_read_and_not_paid_for_again(
    world: JudgingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies after an answer was kept and before it was read."""
    world.evaluation(prompts=2)
    world.judge("single", name="one", concurrency=1)
    monkeypatch.setattr(runner, "outcomes", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        world.work()
    monkeypatch.undo()
    assert (world.count(JudgeAnswer), world.count(Verdict)) == (1, 0)
    with transaction(world.sessions) as session:
        run = session.scalars(select(Run)).one()
        session.execute(update(Run).values(state="queued", lease_owner=None, lease_expires_at=None))
        assert run.attempt == 1
    world.work()
    judge = world.look("one")
    assert (judge["state"], judge["ok"], judge["requests"], judge["cached"]) == ("succeeded", 4, 4, 0)
    assert len(world.server.seen) == len(set(world.prompts_seen)) == 4


def test_two_judges_that_ask_the_same_at_once_pay_once(world: JudgingWorld) -> None:
    world.evaluation(prompts=3)
    for name in ("one", "two"):
        world.judge("single", name=name)

    def slow(_: Seen) -> Answer:
        time.sleep(0.1)
        return completion("Rating: [[3]]")

    world.server.answer = slow
    both = [threading.Thread(target=world.work) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    judges = [world.look(name) for name in ("one", "two")]
    assert [judge["ok"] for judge in judges] == [6, 6]
    assert sum(judge["requests"] for judge in judges) == 6
    assert sum(judge["cached"] for judge in judges) == 6
    assert sorted(world.prompts_seen) == sorted(set(world.prompts_seen))


def test_as_many_requests_are_under_way_as_was_said_and_no_more(world: JudgingWorld) -> None:
    world.evaluation(prompts=9)
    under_way: list[int] = []
    now = 0
    lock = threading.Lock()
    three = threading.Barrier(3, timeout=60)

    def counting(_: Seen) -> Answer:
        nonlocal now
        with lock:
            now += 1
            under_way.append(now)
        three.wait()
        with lock:
            now -= 1
        return completion("Rating: [[3]]")

    world.server.answer = counting
    assert world.judged("single", name="one", concurrency=3)["ok"] == 18
    assert max(under_way) == 3


def test_the_rate_is_kept(world: JudgingWorld) -> None:
    world.evaluation(prompts=2)
    began = time.monotonic()
    world.judged("single", name="one", requests_per_minute=120, concurrency=4)
    # Of four requests a second's worth goes at once, and of the other two each half a second after the one before.
    assert len(world.server.seen) == 4
    assert time.monotonic() - began >= 1.0


# -- the API ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("style", "given", "field"),
    [
        ("arena_hard", {}, "body.settings.baseline"),
        ("alpaca_eval", {"baseline": "nobody"}, "body.settings.baseline"),
        ("pairwise", {"entrants": ["anna"]}, "body.settings.entrants"),
        ("multi", {"entrants": ["anna", "nobody"]}, "body.settings.entrants"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_field(
    world: JudgingWorld, style: str, given: dict[str, Any], field: str
) -> None:
    world.evaluation()
    for dry_run in (False, True):
        answer = post(world, {"style": style, "endpoint": "gpt-judge", "settings": given}, dry_run=dry_run)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_judge")
        assert field in {place["location"] for place in answer.json()["errors"]}


def test_names_are_free_or_found(world: JudgingWorld) -> None:
    world.evaluation()
    body = {"style": "single", "endpoint": "gpt-judge"}
    names = [post(world, body).json()["name"] for _ in range(2)]
    assert names == ["gpt-judge-single", "gpt-judge-single-2"]
    taken = post(world, {**body, "name": names[0]})
    assert (taken.status_code, taken.json()["code"]) == (409, "name_taken")
    assert post(world, {**body, "endpoint": "nobody"}).json()["code"] == "unknown_endpoint"
    missing = world.client.get(f"{PROJECT}/evaluations/e/judges/nobody")
    assert (missing.status_code, missing.json()["code"]) == (404, "unknown_judge")
    listed = world.client.get(f"{PROJECT}/evaluations/e/judges").json()["items"]
    assert [judge["name"] for judge in listed] == names


def test_a_dry_run_starts_nothing(world: JudgingWorld) -> None:
    world.evaluation(entrants=("a", "b", "c"), prompts=5, turns=2)
    before = version(world)
    for style, requests in (("multi", 10), ("single", 30), ("pairwise", 60), ("arena_hard", 20), ("alpaca_eval", 10)):
        body = {"style": style, "endpoint": "gpt-judge", "settings": {"baseline": "a"} if "_" in style else {}}
        answer = post(world, body, dry_run=True)
        assert (answer.status_code, answer.json()) == (200, {"requests": requests, "cached": 0})
    assert version(world) == before
    assert world.client.get(f"{PROJECT}/evaluations/e/judges").json()["items"] == []


def test_a_judge_raises_the_version_when_it_starts_says_something_and_ends(world: JudgingWorld) -> None:
    world.evaluation()
    world.judge("single", name="one")
    started = version(world)
    assert started > 0
    claim = world.claim()
    with transaction(world.sessions) as session:
        lifecycle.request_cancel(session, session.get_one(Run, claim.run_id), "tester")
        endings.cancel(session, claims.fenced(session, claim), 0.0)
    assert version(world) > started
    assert world.look("one")["state"] == "cancelled"


def test_a_judge_waits_for_answers_that_are_being_made(world: JudgingWorld) -> None:
    world.evaluation()
    with transaction(world.sessions) as session:
        upstream = lifecycle.create_run(
            session,
            world.project,
            name="answers",
            config=RUN_CONFIG.validate_python({"run": "mix", "parts": [{}]}),
            inputs={},
            created_by="tester",
            reuse=False,
        )
        session.execute(update(Entrant).where(Entrant.name == "anna").values(run_id=upstream.id))
    judge = world.judge("single", name="one")
    assert (judge["state"], judge["run"]["reason"]) == ("pending", "waits for answers")


def test_a_judge_is_deleted_when_it_does_not_work_and_what_it_paid_for_stays(world: JudgingWorld) -> None:
    world.evaluation()
    world.judge("single", name="one")
    busy = world.client.delete(f"{PROJECT}/evaluations/e/judges/one")
    assert (busy.status_code, busy.json()["code"]) == (409, "in_use")
    world.work()
    assert world.client.delete(f"{PROJECT}/evaluations/e/judges/one").status_code == 204
    assert (world.count(Verdict), world.count(JudgeAnswer)) == (0, 4)
    again = world.judged("single", name="one")
    assert (again["requests"], again["cached"], again["ok"]) == (0, 4, 4)


def test_verdicts_come_in_pages(world: JudgingWorld) -> None:
    world.evaluation(prompts=4)
    world.judged("single", name="one")
    address = f"{PROJECT}/evaluations/e/judges/one/verdicts"
    page = world.client.get(address, params={"limit": 5}).json()
    rest = world.client.get(address, params={"limit": 5, "after": page["next"]}).json()
    assert [len(page["items"]), len(rest["items"]), rest["next"]] == [5, 3, None]
    ids = [row["id"] for row in page["items"] + rest["items"]]
    assert ids == sorted(set(ids))


def test_who_only_reads_starts_no_judge(world: JudgingWorld) -> None:
    world.evaluation()
    made = world.client.post(f"{PROJECT}/tokens", json={"name": "reader", "scopes": ["read"]})
    assert made.status_code == 201, made.text
    headers = {"Authorization": f"Bearer {made.json()['token']}"}
    body = {"style": "single", "endpoint": "gpt-judge"}
    refused = world.client.post(f"{PROJECT}/evaluations/e/judges", json=body, headers=headers)
    assert refused.status_code == 403
    assert world.client.get(f"{PROJECT}/evaluations/e/judges", headers=headers).status_code == 200


# -- as a worker does it ----------------------------------------------------------------------------------------------


def test_a_worker_runs_a_judge_in_a_process_that_shows_its_key_to_nobody(world: JudgingWorld, tmp_path: Path) -> None:
    world.evaluation(prompts=2)
    judge = world.judge("single", name="one")
    shown: list[bytes] = []

    def look_around(_: Seen) -> Answer:
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    variables = (entry / "environ").read_bytes()
                    if judge["run"]["id"].encode() in variables:
                        shown.extend([variables, (entry / "cmdline").read_bytes()])
                except OSError:
                    continue
        return completion(f"Rating: [[3]] by {SECRET}")

    world.server.answer = look_around
    worker = Worker(world.settings, pool="default", group=DeviceGroup(["0"]), name="w")
    worker.drain()
    found = world.look("one")
    assert (found["state"], found["ok"], found["requests"]) == ("succeeded", 4, 4), found["run"]
    run = world.run(judge["run"]["id"])
    assert (run.device_seconds, run.failed_device_seconds) == (0.0, 0.0)
    assert run.progress is not None
    assert (run.progress["done"], run.progress["total"], run.progress["unit"]) == (4, 4, "requests")
    assert len(shown) >= 4
    everything = b"".join(shown) + json.dumps(found).encode() + "\n".join(world.log_of(judge["run"]["id"])).encode()
    everything += b"".join(path.read_bytes() for path in world.settings.home.rglob("*") if path.is_file())
    everything += json.dumps(world.verdicts("one")).encode()
    assert b"steerboard.evaluation.judging.process" in everything
    assert SECRET.encode() not in everything
    with transaction(world.sessions) as session:
        assert_nowhere(session, SECRET)


def assert_nowhere(session: Session, secret: str) -> None:
    for answer in session.scalars(select(JudgeAnswer)):
        assert secret not in answer.content
    for judge in session.scalars(select(Judge)):
        assert secret not in json.dumps(judge.settings)
    for run in session.scalars(select(Run)):
        assert secret not in json.dumps([run.config, run.progress, run.summary, run.error])
