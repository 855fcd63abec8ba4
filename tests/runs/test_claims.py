"""Leases, fencing and the order in which runs are taken."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import select, text

from steerboard.platform.database import transaction
from steerboard.platform.leases import LeaseLost
from steerboard.platform.settings import Settings
from steerboard.runs import progress_log
from steerboard.runs.progress_log import Batch
from steerboard.runs.state import attempt_outcomes, claims, lifecycle, sweeper
from steerboard.runs.state.attempt_outcomes import Failure
from steerboard.runs.state.claims import Claim
from steerboard.runs.tables import Metric, Run, RunAttempt, RunLog
from steerboard_contracts.stage.events import Fix
from support.rows.run_world import World


def test_runs_are_taken_by_priority_then_by_place_in_the_queue_and_only_from_their_pool(world: World) -> None:
    low, high, next_high = world.create("low"), world.create("high", priority=5), world.create("next", priority=5)
    other = world.create("other", pool="large")
    order = [world.claim().run_id for _ in range(3)]  # type: ignore[union-attr]
    assert order == [high, next_high, low]
    assert world.claim() is None
    assert world.claim(pool="large").run_id == other  # type: ignore[union-attr]


def test_concurrent_workers_never_take_the_same_run(world: World) -> None:
    runs = {world.create(f"r{number}") for number in range(24)}
    taken: list[Claim] = []

    def work(owner: str) -> None:
        while claim := world.claim(owner=owner):
            taken.append(claim)

    threads = [threading.Thread(target=work, args=(f"w{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 24
    assert {claim.run_id for claim in taken} == runs


def test_a_stale_worker_writes_nothing_after_another_has_taken_over(world: World) -> None:
    run_id = world.create()
    stale = world.claim(owner="stale")
    assert stale is not None
    world.let_lease_expire()
    fresh = world.claim(owner="fresh")
    assert fresh is not None
    assert fresh.attempt == 2
    batch = Batch(progress={"done": 1}, metrics={("loss", 1): 9.0}, logs=[("info", "late")])
    attempts = [
        lambda session: progress_log.write(session, stale, batch),
        lambda session: claims.renew(session, stale, 30),
        lambda session: attempt_outcomes.succeed(session, claims.fenced(session, stale), {}, 1.0),
        lambda session: attempt_outcomes.cancel(session, claims.fenced(session, stale), 1.0),
    ]
    for write in attempts:
        with pytest.raises(LeaseLost), transaction(world.sessions) as session:
            write(session)
    with transaction(world.sessions) as session:
        assert session.scalars(select(Metric)).all() == []
        assert session.scalars(select(RunLog)).all() == []
        run = session.get_one(Run, run_id)
        assert (run.state, run.attempt, run.lease_owner, run.progress) == ("running", 2, "fresh", None)


def test_the_same_worker_in_a_later_attempt_does_not_pass_for_its_earlier_one(world: World) -> None:
    world.create()
    first = world.claim(owner="w")
    assert first is not None
    world.let_lease_expire()
    assert world.claim(owner="w") is not None
    with pytest.raises(LeaseLost), transaction(world.sessions) as session:
        claims.fenced(session, first)


def test_a_renewed_lease_does_not_expire(world: World) -> None:
    world.create()
    claim = world.claim(lease_seconds=0)
    assert claim is not None
    with transaction(world.sessions) as session:
        assert claims.renew(session, claim, 30).renewed
    with transaction(world.sessions) as session:
        assert sweeper.expire_leases(session, retry_seconds=0) == 0


def test_a_heartbeat_tells_that_cancellation_was_asked_for(world: World) -> None:
    run_id = world.create()
    claim = world.claim()
    assert claim is not None
    with transaction(world.sessions) as session:
        assert not claims.renew(session, claim, 30).wishes.cancel
        lifecycle.request_cancel(session, session.get_one(Run, run_id), "ann")
    with transaction(world.sessions) as session:
        assert claims.renew(session, claim, 30).wishes.cancel


def test_a_heartbeat_does_not_wait_for_a_long_transaction_on_the_run_and_neither_does_the_sweeper(
    world: World,
) -> None:
    world.create()
    claim = world.claim(lease_seconds=0)
    assert claim is not None
    with transaction(world.sessions) as registering:
        claims.fenced(registering, claim)
        with transaction(world.sessions) as session:
            assert not claims.renew(session, claim, 30).renewed
        with transaction(world.sessions) as session:
            assert sweeper.expire_leases(session, retry_seconds=0) == 0


def test_an_attempt_is_made_again_after_a_pause_until_there_are_no_more_and_then_the_last_reason_stands(
    world: World,
) -> None:
    run_id = world.create(max_attempts=2)
    bystander = world.create("bystander", priority=-1)
    memory = Failure("out_of_memory", "The stage ran out of memory.", retryable=True)
    claim = world.claim()
    assert claim is not None
    world.act(claim, lambda session, run: attempt_outcomes.fail(session, run, memory, 2.0, retry_seconds=60))
    assert world.state(run_id) == "queued"
    assert world.claim().run_id == bystander, "its pause has not passed, and the queue continues"  # type: ignore[union-attr]
    with transaction(world.sessions) as session:
        session.execute(text("UPDATE runs SET not_before = clock_timestamp()"))
    claim = world.claim()
    assert claim is not None
    world.act(claim, lambda session, run: attempt_outcomes.fail(session, run, memory, 3.0, retry_seconds=60))
    run = world.get(run_id)
    assert (run.state, run.reason_code, run.attempt) == ("failed", "out_of_memory", 2)
    assert (run.device_seconds, run.failed_device_seconds) == (0.0, 5.0)


MENDED = Failure("out_of_memory", "no", retryable=True, fix=Fix(changes={"micro_tokens": 64}, says="micro-batch 1"))


@pytest.mark.parametrize("failure", [Failure("bad_input", "no"), MENDED], ids=["final", "mended_by_other_settings"])
def test_what_would_fail_alike_is_not_tried_again(world: World, failure: Failure) -> None:
    run_id = world.create()
    claim = world.claim()
    assert claim is not None
    world.act(claim, lambda session, run: attempt_outcomes.fail(session, run, failure, 1.0, 0.0))
    assert world.state(run_id) == "failed"


def test_neither_a_lost_worker_nor_a_stopped_one_costs_an_attempt(world: World) -> None:
    run_id = world.create(max_attempts=2)
    crash = Failure("stage_crashed", "boom", retryable=True)

    def fail_once() -> None:
        claim = world.claim()
        assert claim is not None
        world.act(claim, lambda session, run: attempt_outcomes.fail(session, run, crash, 1.0, 0.0))

    for _ in range(3):
        claim = world.claim()
        assert claim is not None
        world.act(claim, lambda session, run: attempt_outcomes.stop(session, run, "stopped", 1.0))
        lose_worker(world)
        assert world.state(run_id) == "queued"
    fail_once()
    lose_worker(world)
    run = world.get(run_id)
    assert (run.state, run.failed_attempts, run.interruptions) == ("queued", 1, 4)
    fail_once()
    run = world.get(run_id)
    assert (run.state, run.reason_code, run.failed_attempts, run.interruptions) == ("failed", "stage_crashed", 2, 4)
    assert "failed attempt 2 of at most 2" in run.reason
    with transaction(world.sessions) as session:
        attempts = session.scalars(select(RunAttempt.outcome).order_by(RunAttempt.attempt)).all()
    assert attempts == ["stopped", "interrupted"] * 3 + ["failed", "interrupted", "failed"]


def test_a_run_that_loses_its_worker_every_time_ends_with_that_reason(world: World) -> None:
    run_id = world.create(max_attempts=1)
    most = world.get(run_id).max_interruptions
    for number in range(1, most + 1):
        lose_worker(world)
        assert world.get(run_id).interruptions == number
    run = world.get(run_id)
    assert (run.state, run.reason_code, run.failed_attempts) == ("failed", "worker_lost", 0)
    assert f"interruption {most} of at most {most}" in run.reason
    with transaction(world.sessions) as session:
        lifecycle.resume(session, session.get_one(Run, run_id), "ann")
    lose_worker(world)
    assert (world.state(run_id), world.get(run_id).interruptions) == ("queued", 1)


def lose_worker(world: World) -> None:
    assert world.claim() is not None
    world.let_lease_expire()


def test_a_replayed_step_overwrites_its_metrics(world: World) -> None:
    world.create()
    claim = world.claim()
    assert claim is not None
    for value in (3.0, 2.5):
        with transaction(world.sessions) as session:
            progress_log.write(session, claim, Batch(metrics={("loss", 7): value, ("loss", 8): value}))
    with transaction(world.sessions) as session:
        rows = session.execute(select(Metric.step, Metric.value).order_by(Metric.step)).all()
    assert [tuple(row) for row in rows] == [(7, 2.5), (8, 2.5)]


def test_log_lines_that_postgres_cannot_hold_are_kept_as_far_as_it_can(world: World) -> None:
    world.create()
    claim = world.claim()
    assert claim is not None
    with transaction(world.sessions) as session:
        progress_log.write(session, claim, Batch(logs=[("info", "a\x00b\ud800"), ("info", "x" * 100_000)]))
    with transaction(world.sessions) as session:
        lines = session.scalars(select(RunLog.message).order_by(RunLog.id)).all()
    assert lines[0].startswith("a")
    assert len(lines[1]) == progress_log.LINE_CHARACTERS


def test_sweepers_at_work_together_end_each_lost_attempt_once(world: World, settings: Settings) -> None:
    runs = [world.create(f"r{number}", max_attempts=5) for number in range(8)]
    while world.claim(lease_seconds=0):
        pass
    barrier = threading.Barrier(5)

    def sweep() -> None:
        barrier.wait()
        sweeper.sweep(world.sessions, settings)

    threads = [threading.Thread(target=sweep) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for run in runs:
        assert world.timeline(run) == ["pending", "queued", "running", "queued"]
