"""What webhooks are sent, and that it is sent exactly when it happened."""

from __future__ import annotations

import threading

import pytest
from notice_world import BASE, NoticeWorld
from sqlalchemy import text

from steerboard.platform.database import transaction
from steerboard.runs.state import attempt_outcomes, claims, lifecycle
from steerboard.runs.tables import Run
from support.patience import PATIENCE

URL = "https://ci.example/hook"


def told(world: NoticeWorld, name: str = "ci") -> list[tuple[str, str]]:
    return [(each["event"], each["payload"]["data"]["name"]) for each in world.deliveries(name)]


def test_a_run_that_ends_is_told_with_its_reason_and_its_link(world: NoticeWorld) -> None:
    world.hook(URL)
    good, bad = world.run("good"), world.run("bad")
    world.work()
    world.work(fail="out_of_memory")
    first, second = world.deliveries()
    assert (first["event"], first["state"], first["attempts"]) == ("run.succeeded", "pending", 0)
    assert first["payload"]["type"] == "run.succeeded"
    data = first["payload"]["data"]
    assert (data["id"], data["project"], data["state"]) == (str(good), "default", "succeeded")
    assert data["url"] == f"https://steerboard.example/p/default/runs/{good}"
    data = second["payload"]["data"]
    assert (second["event"], data["id"], data["reason_code"]) == ("run.failed", str(bad), "out_of_memory")
    assert "it went wrong" in data["reason"]


def test_only_the_events_that_a_webhook_asked_for(world: NoticeWorld) -> None:
    world.hook(URL, "run.failed", name="failures")
    world.hook(URL, "pipeline.succeeded", name="pipelines")
    world.hook(URL, name="off")
    world.client.patch(f"{BASE}/off", json={"active": False})
    world.pipeline("a")
    world.run("b")
    world.work()
    world.work(fail="bad_input")
    assert told(world, "failures") == [("run.failed", "b")]
    assert told(world, "pipelines") == [("pipeline.succeeded", "rlhf-1")]
    assert told(world, "off") == []


def test_a_pipeline_ends_once_with_the_worst_of_its_stages(world: NoticeWorld) -> None:
    world.hook(URL, "pipeline.succeeded", "pipeline.failed", "pipeline.cancelled")
    world.pipeline("a", "b", "c")
    world.work()
    world.work(fail="bad_input")
    assert world.deliveries() == []
    world.work()
    (only,) = world.deliveries()
    assert only["event"] == "pipeline.failed"
    assert only["payload"]["data"]["stages"] == {"succeeded": 2, "failed": 1}
    assert only["payload"]["data"]["reason"] == "1 failed, 2 succeeded"


def test_the_last_two_stages_at_the_same_moment_end_their_pipeline_once(world: NoticeWorld) -> None:
    world.hook(URL, "pipeline.succeeded")
    pipeline = world.pipeline("a", "b")
    both_written = threading.Barrier(2, timeout=PATIENCE)
    mine = [world.claim(), world.claim()]

    def finish(claim: claims.Claim) -> None:
        with transaction(world.sessions) as session:
            attempt_outcomes.succeed(session, claims.fenced(session, claim), {}, 1.0)
            both_written.wait()  # now neither has committed

    threads = [threading.Thread(target=finish, args=(claim,)) for claim in mine]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each["payload"]["data"]["id"] for each in world.deliveries()] == [str(pipeline)]


def test_what_is_rolled_back_is_not_told(world: NoticeWorld) -> None:
    world.hook(URL)
    run = world.run("a")
    with world.sessions() as session:
        lifecycle.request_cancel(session, session.get_one(Run, run), "somebody")
        session.rollback()
    assert world.deliveries() == []
    with transaction(world.sessions) as session:
        lifecycle.request_cancel(session, session.get_one(Run, run), "somebody")
    assert told(world) == [("run.cancelled", "a")]


def test_runs_downstream_and_those_that_go_on_are_told_as_what_became_of_them(world: NoticeWorld) -> None:
    world.hook(URL)
    first = world.run("first")
    world.run("second", after=first)
    world.work(fail="bad_input")
    assert told(world) == [("run.failed", "first"), ("run.failed", "second")]
    with transaction(world.sessions) as session:
        lifecycle.resume(session, session.get_one(Run, first), "somebody")
    world.work()
    world.work()
    assert told(world)[2:] == [("run.succeeded", "first"), ("run.succeeded", "second")]


@pytest.mark.parametrize("held", ["deleted", "changed"])
def test_a_webhook_that_changes_meanwhile_never_fails_a_run(world: NoticeWorld, held: str) -> None:
    world.hook(URL)
    world.run("a")
    mine = world.claim()
    changing = world.sessions()
    changing.execute(
        text("DELETE FROM notice_rules" if held == "deleted" else "UPDATE notice_rules SET url = 'https://x/'")
    )

    def finish() -> None:
        with transaction(world.sessions) as session:
            attempt_outcomes.succeed(session, claims.fenced(session, mine), {}, 1.0)

    thread = threading.Thread(target=finish)
    thread.start()
    thread.join(0.3)
    changing.commit()
    changing.close()
    thread.join(20)
    with transaction(world.sessions) as session:
        assert session.get_one(Run, mine.run_id).state == "succeeded"
