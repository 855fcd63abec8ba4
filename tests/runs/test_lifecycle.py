"""Creating, cancelling and resuming runs."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from steerboard.platform.database import new_id, transaction
from steerboard.platform.events.tables import Event
from steerboard.platform.http.errors import NotFound
from steerboard.runs.errors import RunNotActive, RunNotResumable
from steerboard.runs.state import attempt_outcomes, lifecycle, sweeper
from steerboard.runs.state.attempt_outcomes import Failure
from steerboard.runs.tables import Run
from support.rows.run_world import World

BAD_INPUT = Failure("bad_input", "Row 3 is empty.", retryable=False)


def succeed(world: World) -> None:
    claim = world.claim()
    assert claim is not None
    world.act(claim, lambda session, run: attempt_outcomes.succeed(session, run, {}, 1.0))
    sweeper.settle_all(world.sessions)


def fail(world: World, failure: Failure = BAD_INPUT) -> None:
    claim = world.claim()
    assert claim is not None
    world.act(claim, lambda session, run: attempt_outcomes.fail(session, run, failure, 1.0, 0.0))
    sweeper.settle_all(world.sessions)


def cancel(world: World, run_id: object, actor: str = "ann") -> None:
    with transaction(world.sessions) as session:
        lifecycle.request_cancel(session, session.get_one(Run, run_id), actor)


def resume(world: World, run_id: object) -> None:
    with transaction(world.sessions) as session:
        lifecycle.resume(session, session.get_one(Run, run_id), "ann")


def test_a_run_without_upstream_is_queued_at_once_and_one_with_upstream_waits_for_it(world: World) -> None:
    first = world.create("first")
    second = world.create("second", inputs={"model": first})
    assert (world.state(first), world.state(second)) == ("queued", "pending")
    assert "first" in world.get(second).reason
    succeed(world)
    assert (world.state(first), world.state(second)) == ("succeeded", "queued")


def test_every_change_of_state_is_in_the_timeline_and_in_the_event_stream(world: World) -> None:
    run = world.create()
    succeed(world)
    assert world.timeline(run) == ["pending", "queued", "running", "succeeded"]
    with transaction(world.sessions) as session:
        events = session.scalars(select(Event).where(Event.type == "run.state").order_by(Event.id)).all()
    assert [event.payload["state"] for event in events] == ["pending", "queued", "running", "succeeded"]


def test_a_failure_ends_everything_downstream_and_names_the_run_at_fault(world: World) -> None:
    first = world.create("first")
    second = world.create("second", inputs={"model": first})
    third = world.create("third", inputs={"model": second})
    fail(world)
    assert world.get(first).reason_code == "bad_input"
    for run, culprit in ((second, "first"), (third, "second")):
        ended = world.get(run)
        assert (ended.state, ended.reason_code) == ("failed", "upstream_failed")
        assert culprit in ended.reason


def test_an_input_of_another_project_is_not_found(world: World) -> None:
    with pytest.raises(NotFound):
        world.create(inputs={"data": lifecycle.InputRef(dataset=new_id())})


def test_cancelling_a_run_that_nobody_works_on_ends_it_at_once_and_says_who_did(world: World) -> None:
    first = world.create("first")
    second = world.create("second", inputs={"model": first})
    cancel(world, first)
    sweeper.settle_all(world.sessions)
    assert (world.state(first), world.state(second)) == ("cancelled", "cancelled")
    assert "ann" in world.get(first).reason
    assert world.claim() is None


def test_cancelling_a_running_run_waits_for_its_worker_and_asking_twice_is_asking_once(world: World) -> None:
    run = world.create()
    claim = world.claim()
    assert claim is not None
    cancel(world, run, "ann")
    cancel(world, run, "bob")
    assert world.state(run) == "running"
    world.act(claim, lambda session, row: attempt_outcomes.cancel(session, row, 1.0))
    assert world.get(run).reason == "cancelled by ann"
    cancel(world, run)
    assert world.timeline(run)[-2:] == ["running", "cancelled"]


def test_a_run_that_fails_after_its_cancellation_was_asked_for_is_not_tried_again(world: World) -> None:
    run = world.create()
    claim = world.claim()
    assert claim is not None
    cancel(world, run)
    lost = Failure("worker_lost", "gone", retryable=True)
    world.act(claim, lambda session, row: attempt_outcomes.fail(session, row, lost, 1.0, 0.0))
    assert world.state(run) == "cancelled"


def test_a_run_that_succeeded_cannot_be_cancelled_or_resumed(world: World) -> None:
    run = world.create()
    succeed(world)
    with pytest.raises(RunNotActive):
        cancel(world, run)
    with pytest.raises(RunNotResumable):
        resume(world, run)


def test_resuming_a_failed_run_brings_back_what_ended_because_of_it(world: World) -> None:
    first = world.create("first")
    second = world.create("second", inputs={"model": first})
    third = world.create("third", inputs={"model": second})
    fail(world)
    with pytest.raises(RunNotResumable, match="first"):
        resume(world, second)
    resume(world, first)
    assert [world.state(run) for run in (first, second, third)] == ["queued", "pending", "pending"]
    succeed(world)
    succeed(world)
    succeed(world)
    assert world.state(third) == "succeeded"
    assert world.get(first).attempt == 2


def test_a_resumed_run_has_all_its_attempts_again(world: World) -> None:
    run = world.create(max_attempts=1)
    crash = Failure("stage_crashed", "boom", retryable=True)
    fail(world, crash)
    assert world.state(run) == "failed"
    resume(world, run)
    fail(world, crash)
    assert world.state(run) == "queued"


def test_a_sharded_run_waits_for_its_shards_and_then_gathers_them(world: World) -> None:
    config = {"run": "generate", "prompts": ["hi"], "shards": 3}
    parent = world.create("generated", config=config)
    assert world.state(parent) == "pending"
    for _ in range(3):
        assert world.state(parent) == "pending"
        succeed(world)
    assert world.state(parent) == "queued"
    succeed(world)
    ended = world.get(parent)
    with transaction(world.sessions) as session:
        first = session.scalar(select(func.min(Run.started_at)).where(Run.parent_id == parent))
    assert (ended.state, ended.started_at) == ("succeeded", first), "its time is that of its shards"


def test_a_broken_shard_fails_the_sharded_run_and_ends_the_others(world: World) -> None:
    config = {"run": "generate", "prompts": ["hi"], "shards": 3}
    parent = world.create("generated", config=config)
    running = world.claim()
    assert running is not None
    fail(world)
    assert world.get(parent).reason_code == "bad_input"
    with transaction(world.sessions) as session:
        shards = session.scalars(select(Run).where(Run.parent_id == parent).order_by(Run.shard)).all()
    assert [shard.state for shard in shards] == ["running", "failed", "cancelled"]
    assert shards[0].cancel_requested_at is not None
    world.act(running, lambda session, row: attempt_outcomes.cancel(session, row, 1.0))
    resume(world, parent)
    for _ in range(4):
        succeed(world)
    assert world.state(parent) == "succeeded"


def test_cancelling_a_sharded_run_ends_its_shards(world: World) -> None:
    parent = world.create("generated", config={"run": "generate", "prompts": ["hi"], "shards": 2})
    cancel(world, parent)
    sweeper.settle_all(world.sessions)
    assert world.state(parent) == "cancelled"
    assert world.claim() is None
