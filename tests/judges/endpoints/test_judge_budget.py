"""Prices, and a budget that stops a judge before it overspends. The completion price makes a token cost 1."""

from __future__ import annotations

import re
import threading
import time
from typing import Any

import pytest
from judge_world import PROJECT, JudgeWorld, completion, post

from steerboard_workers.supervisor.device_group import DeviceGroup
from steerboard_workers.worker import Worker
from support.servers.other_server import Answer, Seen

PRICED = {"completion_price": 1_000_000.0, "max_tokens": 10}  # at most 10 a request; the answers cost 7


def change(world: JudgeWorld, name: str, budget: float | None) -> Any:
    return world.client.patch(f"{PROJECT}/evaluations/e/judges/{name}", json={"budget": budget})


def test_a_judge_stops_before_the_request_that_could_exceed_its_budget(world: JudgeWorld) -> None:
    world.evaluation(prompts=3)
    world.judge("single", name="one", concurrency=1, budget=30, **PRICED)
    world.work()
    judge = world.look("one")
    # 7 + 7 + 7 are spent; 21 + 10 would be too much.
    assert (judge["state"], judge["requests"], judge["ok"], judge["cost"]) == ("failed", 3, 3, 21)
    assert "21 of the budget of 30 is spent" in judge["run"]["reason"]
    assert change(world, "one", 52).json()["settings"]["budget"] == 52
    assert world.client.post(f"{PROJECT}/evaluations/e/judges/one/retry").status_code == 200
    world.work()
    judge = world.look("one")
    assert (judge["state"], judge["requests"], judge["ok"], judge["cost"]) == ("succeeded", 6, 6, 42)
    assert len(world.server.seen) == 6


def test_requests_under_way_count_against_the_budget_until_they_are_answered(world: JudgeWorld) -> None:
    """Eight threads would each see room for one more without the first; what is only reserved would end the run without
    the second."""
    world.evaluation(prompts=10)
    lock, under_way, most = threading.Lock(), 0, 0

    def slow(_: Any) -> Answer:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        time.sleep(0.5)
        with lock:
            under_way -= 1
        return completion("[[7]]")

    world.server.answer = slow
    world.judge("single", name="one", concurrency=8, budget=39, **PRICED)
    world.work()
    judge = world.look("one")
    assert most <= 3
    # As many as one after the other: a fifth request still fits next to the four that cost 28.
    assert (judge["state"], judge["requests"], judge["cost"]) == ("failed", 5, 35)
    assert "35 of the budget of 39 is spent, and the next request may cost up to 10" in judge["run"]["reason"]


def test_what_is_only_reserved_is_not_said_to_be_spent(world: JudgeWorld) -> None:
    """The third request is too long whatever those before it cost, of which one is still under way."""
    world.evaluation(
        prompts=1, entrants=("anna", "bert", "cleo"), answer=lambda who, *_: who * (2000 if who == "cleo" else 1)
    )
    first, second = threading.Event(), threading.Event()

    def answer(seen: Seen) -> Answer:
        if "anna" in seen.json["messages"][1]["content"]:
            first.set()
            second.wait(30)
            time.sleep(1)
        else:
            first.wait(30)
            second.set()
        return completion("[[7]]")

    world.server.answer = answer
    prices = {"prompt_price": 1_000_000.0, "max_tokens": 10}
    world.judge("single", name="one", concurrency=2, budget=7000, **prices)
    world.work()
    judge = world.look("one")
    match = re.search(r"100 of the budget of 7000 is spent, up to (\d+) more is reserved", judge["run"]["reason"])
    sent = next(seen.json["messages"] for seen in world.server.seen if "anna" in seen.json["messages"][1]["content"])
    assert match is not None, judge["run"]["reason"]
    assert int(match[1]) == sum(len(message["content"].encode()) + 32 for message in sent)
    assert (judge["ok"], judge["cost"]) == (2, 200)


@pytest.mark.parametrize(("status", "cost"), [(408, 24), (500, 24), (502, 24), (504, 24), (503, 14), (429, 14)])
def test_an_error_that_may_hide_a_paid_answer_costs_its_bound(world: JudgeWorld, status: int, cost: float) -> None:
    world.evaluation(prompts=1)
    broken = [Answer.json({"error": {"message": "upstream timed out"}}, status)]
    world.server.answer = lambda _: broken.pop() if broken else completion("[[7]]")
    judge = world.judged("single", name="one", concurrency=1, budget=40, **PRICED)
    assert (judge["state"], judge["ok"], judge["cost"], judge["uncertain_cost"]) == ("succeeded", 2, cost, cost - 14)


def test_requests_of_a_killed_process_count_as_spent(world: JudgeWorld) -> None:
    """Cancelled in the middle, its process gets no time to write anything down."""
    world.evaluation(prompts=2)
    judge = world.judge("single", name="one", concurrency=4, budget=60, **PRICED)
    world.settings.heartbeat_seconds = 0.2
    all_sent, released = threading.Event(), threading.Event()

    def silent(_: Seen) -> Answer:
        if len(world.server.seen) >= 4:
            all_sent.set()
        released.wait(60)
        return completion("[[7]]")

    world.server.answer = silent
    worker = Worker(world.settings, pool="default", group=DeviceGroup(["0"]), name="w")
    working = threading.Thread(target=worker.drain_deviceless)
    working.start()
    assert all_sent.wait(60)
    assert world.look("one")["uncertain_cost"] == 40
    assert world.client.post(f"{PROJECT}/runs/{judge['run']['id']}/cancel").status_code == 200
    working.join(60)
    released.set()
    judged = world.look("one")
    assert (judged["state"], judged["requests"], judged["cost"]) == ("cancelled", 0, 40)
    world.server.answer = lambda _: completion("[[7]]")
    assert world.client.post(f"{PROJECT}/evaluations/e/judges/one/retry").status_code == 200
    world.work()
    judged = world.look("one")
    # 40 + 7 + 7 are spent; another 10 would be too much.
    assert (judged["state"], judged["ok"], judged["cost"]) == ("failed", 2, 54)


def test_what_may_have_been_billed_without_an_answer_counts_as_spent(world: JudgeWorld) -> None:
    world.evaluation(prompts=2)
    lost = [Answer.json({"nonsense": True})]
    world.server.answer = lambda _: lost.pop() if lost else completion("[[7]]")
    world.judge("single", name="one", concurrency=1, budget=33, **PRICED)
    world.work()
    judge = world.look("one")
    # 10 + 7 + 7 are spent; without the lost answer there would be room for one more.
    assert (judge["state"], judge["ok"]) == ("failed", 2)
    assert (judge["uncertain_cost"], judge["cost"]) == (10, 24)


def test_an_answer_whose_tokens_are_not_counted_costs_what_it_may_have_cost(world: JudgeWorld) -> None:
    world.evaluation(prompts=1)
    choice = {"index": 0, "message": {"role": "assistant", "content": "[[7]]"}, "finish_reason": "stop"}
    world.server.answer = lambda _: Answer.json({"choices": [choice]})
    judge = world.judged("single", name="one", **PRICED)
    assert (judge["ok"], judge["uncertain_cost"], judge["cost"]) == (2, 20, 20)


def test_a_refused_request_costs_nothing(world: JudgeWorld) -> None:
    world.evaluation(prompts=1)
    busy = [Answer.json({"error": {"message": "slow down"}}, 429)]
    world.server.answer = lambda _: busy.pop() if busy else completion("[[7]]")
    judge = world.judged("single", name="one", concurrency=1, budget=20, **PRICED)
    assert (judge["state"], judge["uncertain_cost"], judge["cost"]) == ("succeeded", 0, 14)


def test_an_endpoint_that_cannot_be_reached_costs_nothing(world: JudgeWorld) -> None:
    world.evaluation(prompts=1)
    world.endpoint("gone", url="http://127.0.0.1:1")
    body = {"name": "one", "style": "single", "endpoint": "gone", "settings": {**PRICED, "attempts": 1}}
    assert post(world, body).status_code == 201
    world.work()
    judge = world.look("one")
    assert (judge["failures"], judge["cost"]) == ({"broken_connection": 2}, 0)


def test_the_estimate_is_an_upper_bound_of_what_is_not_answered_yet(world: JudgeWorld) -> None:
    world.evaluation(prompts=2)
    body = {"style": "single", "endpoint": "gpt-judge", "settings": PRICED}
    assert post(world, body, dry_run=True).json() == {"requests": 4, "cached": 0, "most_cost": 40}
    world.judged("single", name="one", **PRICED)
    assert post(world, body, dry_run=True).json() == {"requests": 4, "cached": 4, "most_cost": 0}


def test_a_prompt_costs_at_most_a_token_for_each_byte(world: JudgeWorld) -> None:
    world.evaluation(prompts=1, entrants=("anna",))
    settings = {"prompt_price": 1_000_000.0}
    body = {"style": "single", "endpoint": "gpt-judge", "settings": settings}
    most = post(world, body, dry_run=True).json()["most_cost"]
    world.judged("single", name="one", **settings)
    sent = world.server.seen[0].json["messages"]
    assert most == sum(len(message["content"].encode()) + 32 for message in sent)


@pytest.mark.parametrize(
    ("given", "field"),
    [({"budget": 5}, "budget"), ({"budget": 0, "prompt_price": 1}, "budget"), ({"prompt_price": -1}, "prompt_price")],
)
def test_settings_that_make_no_budget_are_refused_by_field(
    world: JudgeWorld, given: dict[str, float], field: str
) -> None:
    world.evaluation()
    refused = post(world, {"style": "single", "endpoint": "gpt-judge", "settings": given})
    assert refused.status_code == 422
    assert [error["location"] for error in refused.json()["errors"]] == [f"body.settings.{field}"]


def test_a_judge_without_prices_gets_no_budget(world: JudgeWorld) -> None:
    world.evaluation()
    world.judged("single", name="one")
    refused = change(world, "one", 5)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_judge")
    assert change(world, "one", None).status_code == 200
