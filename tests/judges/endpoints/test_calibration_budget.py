"""A judge and its calibrations have one budget. A request costs at most 10, its answer 7."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from judge_world import PROJECT, JudgeWorld, completion
from known_pairs import calibrate, pairs

from support.servers.other_server import Answer, Seen

PRICED = {"completion_price": 1_000_000.0, "max_tokens": 10, "concurrency": 1}


@pytest.fixture
def priced(world: JudgeWorld) -> JudgeWorld:
    """Judge `one` has spent 14 of 60 on its evaluation, and can be calibrated on two sets of 10 pairs."""
    world.evaluation(prompts=1)
    pairs(world, 10)
    pairs(world, 10, "others")
    world.server.answer = lambda _: completion("[[A]]")
    assert world.judged("pairwise", name="one", budget=60, **PRICED)["cost"] == 14
    return world


def look(world: JudgeWorld, name: str = "calibration-pairs") -> dict[str, Any]:
    return world.look("one", name)


def test_calibrations_spend_what_the_judge_has_left_and_have_a_cost_of_their_own(priced: JudgeWorld) -> None:
    calibrate(priced, "one")
    priced.work()
    judged = look(priced)
    # 14 + 6 * 7 = 56 are spent; another 10 would be too much.
    assert (judged["state"], judged["requests"], judged["cost"]) == ("failed", 6, 42)
    assert "56 of the budget of 60 is spent" in judged["run"]["reason"]
    calibrate(priced, "one", dataset="others")
    priced.work()
    other = look(priced, "calibration-others")
    assert (other["state"], other["requests"], other["settings"]["budget"]) == ("failed", 0, 60)
    judge = priced.look("one")
    assert (judge["cost"], judge["calibration_cost"], judge["settings"]["budget"]) == (14, 42, 60)
    quality = priced.client.get(f"{PROJECT}/evaluations/e/report").json()["judges"][0]["quality"]
    assert (quality["cost"], quality["calibration_cost"]) == (14, 42)


def test_the_one_budget_can_be_changed_at_the_judge_and_at_its_calibration(priced: JudgeWorld) -> None:
    calibrate(priced, "one")
    priced.work()
    path = f"{PROJECT}/evaluations/calibration-pairs/judges/one"
    assert priced.client.patch(path, json={"budget": 80}).json()["settings"]["budget"] == 80
    assert priced.look("one")["settings"]["budget"] == 80
    assert priced.client.post(f"{path}/retry").status_code == 200
    priced.work()
    assert (look(priced)["cost"], priced.look("one")["calibration_cost"]) == (63, 63)
    assert priced.client.patch(f"{PROJECT}/evaluations/e/judges/one", json={"budget": None}).status_code == 200
    assert look(priced)["settings"]["budget"] is None
    priced.client.post(f"{path}/retry")
    priced.work()
    assert (look(priced)["state"], look(priced)["cost"]) == ("succeeded", 140)


def test_asked_again_a_calibration_still_spends_the_same_budget(priced: JudgeWorld) -> None:
    """What failed is asked in another run."""
    priced.client.patch(f"{PROJECT}/evaluations/e/judges/one", json={"budget": 155})
    broken = True

    def answer(_: Any) -> Answer:
        nonlocal broken
        refused, broken = broken, False
        return Answer.json({"error": {"message": "no"}}, 422) if refused else completion("[[A]]")

    priced.server.answer = answer
    calibrate(priced, "one")
    priced.work()
    judge = look(priced)
    assert (judge["state"], judge["errors"], judge["cost"]) == ("succeeded", 1, 133)
    priced.client.post(f"{PROJECT}/evaluations/calibration-pairs/judges/one/retry")
    priced.work()
    # 14 + 133 + 10 would be too much.
    assert (look(priced)["state"], look(priced)["cost"]) == ("failed", 133)
    assert priced.look("one")["calibration_cost"] == 133


def test_a_judge_and_its_calibration_at_once_do_not_spend_more_together(world: JudgeWorld) -> None:
    world.evaluation(prompts=10)
    pairs(world, 10)
    asking, both_ask = set[bool](), threading.Event()

    def slow(seen: Seen) -> Answer:
        asking.add("anna says" in seen.json["messages"][1]["content"])
        if len(asking) == 2:
            both_ask.set()
        both_ask.wait(30)
        time.sleep(0.05)
        return completion("[[A]]")

    world.server.answer = slow
    world.judge("pairwise", name="one", budget=200, **PRICED | {"concurrency": 2})
    calibrate(world, "one")
    both = [threading.Thread(target=world.work) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    judge = world.look("one")
    total = judge["cost"] + judge["calibration_cost"]
    assert 160 < total <= 200
    assert len(world.server.seen) * 7 == total
    assert "failed" in (judge["state"], look(world)["state"])


def test_a_calibration_that_its_budget_stopped_goes_on_when_it_is_asked_for_again(priced: JudgeWorld) -> None:
    calibrate(priced, "one")
    priced.work()
    assert look(priced)["state"] == "failed"
    priced.client.patch(f"{PROJECT}/evaluations/e/judges/one", json={"budget": None})
    calibrate(priced, "one")
    priced.work()
    assert (look(priced)["state"], look(priced)["cost"]) == ("succeeded", 140)
    # What has ended well is not asked again.
    calibrate(priced, "one")
    assert look(priced)["state"] == "succeeded"


def test_a_calibration_outlives_its_judge_with_the_budget_that_it_began_with(priced: JudgeWorld) -> None:
    calibrate(priced, "one")
    assert priced.client.delete(f"{PROJECT}/evaluations/e/judges/one").status_code == 204
    priced.work()
    # 8 * 7 = 56 of its own are spent.
    assert (look(priced)["state"], look(priced)["cost"]) == ("failed", 56)
