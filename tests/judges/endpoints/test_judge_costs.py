"""Requests are paid for once, at the concurrency and the rate that were set."""

from __future__ import annotations

import threading
import time

import pytest
from judge_world import JudgeWorld, completion, post
from sqlalchemy import select, update

from steerboard.evaluation.judge_tables import JudgeAnswer, Verdict
from steerboard.evaluation.judges import runner
from steerboard.evaluation.tables import Entrant, Evaluation, Response
from steerboard.platform.database import transaction
from steerboard.runs.tables import Run
from support.patience import PATIENCE
from support.servers.other_server import Answer, Seen


def test_equal_requests_are_paid_for_once_in_a_project(world: JudgeWorld) -> None:
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
    assert post(world, body, dry_run=True).json() == {"requests": 4, "cached": 1, "most_cost": None}
    judge = world.judged("single", name="one")
    assert (judge["requests"], judge["cached"], judge["verdicts"]) == (3, 1, 4)
    assert post(world, body, dry_run=True).json() == {"requests": 4, "cached": 4, "most_cost": None}
    again = world.judged("single", name="two")
    assert (again["requests"], again["cached"], again["prompt_tokens"]) == (0, 4, None)
    assert len(world.server.seen) == 3
    assert post(world, body, "f", dry_run=True).json() == {"requests": 4, "cached": 3, "most_cost": None}
    other = world.judged("single", name="one", evaluation="f")
    assert (other["requests"], other["cached"], other["verdicts"]) == (1, 3, 4)
    assert len(world.server.seen) == 4


def test_what_was_answered_before_the_process_died_is_read_and_not_paid_for_again(
    world: JudgeWorld, monkeypatch: pytest.MonkeyPatch
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


def test_two_judges_that_ask_the_same_at_once_pay_once(world: JudgeWorld) -> None:
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


def test_as_many_requests_are_under_way_as_was_said_and_no_more(world: JudgeWorld) -> None:
    world.evaluation(prompts=9)
    under_way: list[int] = []
    now = 0
    lock = threading.Lock()
    three = threading.Barrier(3, timeout=PATIENCE)

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


def test_the_rate_is_kept(world: JudgeWorld) -> None:
    world.evaluation(prompts=2)
    began = time.monotonic()
    world.judged("single", name="one", requests_per_minute=120, concurrency=4)
    # A second's worth of four requests is sent at once, and each of the other two half a second after the one before.
    assert len(world.server.seen) == 4
    assert time.monotonic() - began >= 1.0
