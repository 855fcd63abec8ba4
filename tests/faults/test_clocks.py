"""The clock of a worker's machine jumps by an hour, forwards or backwards: leases go by the database's clock, deadlines
by one that no one sets."""

from __future__ import annotations

import datetime as dt
import fcntl
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from fault_stack import SFT, Stack
from sqlalchemy import func, select, update
from wrong_clock import COMPILER, HOUR, WrongClock

from steerboard.platform.database import transaction
from steerboard.runs.state import claims
from steerboard.runs.tables import Run, RunAttempt
from steerboard_contracts import guardian

LONGER = SFT | {"epochs": 30, "checkpoint_every": 40}
ENDLESS = LONGER | {"epochs": 1000}
LEASE = {"STEERBOARD_LEASE_SECONDS": "10"}
OTHER_POOL = ["--pool", "other"]

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(COMPILER is None, reason="no C compiler (cc) to make a wrong clock with"),
]
both_ways = pytest.mark.parametrize("by", [HOUR, -HOUR], ids=["ahead", "behind"])


@pytest.fixture
def clock(tmp_path: Path) -> WrongClock:
    return WrongClock(tmp_path)


def test_the_clock_of_these_tests_is_wrong_where_it_should_be_and_nowhere_else(clock: WrongClock) -> None:
    clock.jump(HOUR)
    tell = "import time; print(time.time(), time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME))"
    told = subprocess.run(
        [sys.executable, "-I", "-S", "-c", tell], env=clock.environment, capture_output=True, check=True
    )
    wall, monotonic, since_boot = map(float, told.stdout.split())
    assert wall == pytest.approx(time.time() + HOUR, abs=60)
    assert monotonic == pytest.approx(time.monotonic(), abs=60)
    assert since_boot == pytest.approx(time.clock_gettime(time.CLOCK_BOOTTIME), abs=60)


@both_ways
def test_a_jump_of_an_hour_moves_no_lease_and_ends_no_stage(stack: Stack, clock: WrongClock, by: int) -> None:
    """The clock of the worker that has the run, of its guardian and of its stage jumps; another worker sweeps with a
    right clock."""
    expected = stack.undisturbed(LONGER)
    run_id = stack.create("sft", LONGER)
    worker = stack.start_worker("jumps", **LEASE, **clock.environment)
    stack.wait_for_step(run_id, 40)
    stack.start_worker("sweeps", **LEASE)
    clock.jump(by)
    moved = time.time()
    stack.wait(lambda: heartbeat(stack) > moved + 1 or stack.run(run_id).state != "running", 30, "no heartbeat")
    (run,) = stack.finish(run_id)
    assert (run.state, run.attempt) == ("succeeded", 1), run.reason
    assert stack.timeline(run_id) == ["pending", "queued", "running", "succeeded"]
    assert stack.result(run_id) == expected
    assert "could not" not in worker.log.read_text()


@both_ways
def test_a_worker_with_a_wrong_clock_frees_the_runs_of_the_dead_and_no_others(
    stack: Stack, clock: WrongClock, by: int
) -> None:
    clock.jump(by)
    alive, dead = stack.create_mix("alive"), stack.create_mix("dead")
    for run_id, seconds in ((alive, 300.0), (dead, 0.1)):
        assert claim(stack, seconds) == run_id
    stack.start_worker("sweeps", options=OTHER_POOL, **LEASE, **clock.environment)
    stack.wait(lambda: stack.run(dead).state == "queued", 60, "the dead worker's run was not freed")
    assert stack.run(dead).reason_code == "worker_lost"
    # Once more, all of it: the run that was just freed is claimed and dies again.
    stack.wait(lambda: claim(stack, 0.1) == dead, 10, "the freed run was not to be had", pause=0.2)
    stack.wait(lambda: stack.run(dead).state == "queued", 30, "the dead worker's run was not freed again")
    assert (stack.run(alive).state, stack.run(alive).attempt) == ("running", 1)


@both_ways
def test_a_worker_with_a_wrong_clock_takes_what_is_due_and_nothing_else(
    stack: Stack, clock: WrongClock, by: int
) -> None:
    clock.jump(by)
    pauses, due = stack.create_mix("pauses"), stack.create_mix("due")
    with transaction(stack.sessions) as session:
        for run_id, seconds in ((pauses, 300), (due, -1)):
            then = func.clock_timestamp() + dt.timedelta(seconds=seconds)
            session.execute(update(Run).where(Run.id == run_id).values(not_before=then))
    stack.start_worker("works", **LEASE, **clock.environment)
    (run,) = stack.finish(due, seconds=60)
    assert run.state == "succeeded", run.reason
    assert (stack.run(pauses).state, stack.run(pauses).attempt) == ("queued", 0)


@both_ways
def test_the_run_of_a_frozen_worker_with_a_wrong_clock_goes_on_elsewhere_in_time(
    stack: Stack, clock: WrongClock, by: int
) -> None:
    clock.jump(by)
    run_id = stack.create("sft", ENDLESS)
    worker = stack.start_worker("freezes", **LEASE, **clock.environment)
    stack.wait_for_step(run_id, 40)
    with transaction(stack.sessions) as session:
        left = session.scalar(select(Run.lease_expires_at - func.clock_timestamp()).where(Run.id == run_id))
    assert left is not None
    assert 0 < left.total_seconds() <= 10
    worker.signal(signal.SIGSTOP)
    stack.start_worker("continues", **LEASE)
    stack.wait(lambda: stack.run(run_id).attempt == 2, 30, "nobody took it over")
    assert stack.timeline(run_id) == ["pending", "queued", "running", "queued", "running"]


@both_ways
def test_the_stage_of_a_frozen_worker_ends_within_its_lease_though_the_clock_jumps(
    stack: Stack, clock: WrongClock, by: int
) -> None:
    run_id = stack.create("sft", ENDLESS)
    worker = stack.start_worker("freezes", **LEASE, **clock.environment)
    stack.wait_for_step(run_id, 40)
    worker.signal(signal.SIGSTOP)
    assert stack.stage_pids(run_id)
    clock.jump(by)
    time.sleep(3)  # what is left of the lease by a right clock
    assert stack.stage_pids(run_id), "it ended long before its lease"
    # A lease of ten seconds, of which the stage has eight.
    stack.wait(lambda: not stack.stage_pids(run_id), 8, "the stage outlived its lease")


@both_ways
def test_who_waits_for_a_home_that_is_in_use_gives_up_in_time(clock: WrongClock, tmp_path: Path, by: int) -> None:
    lock = tmp_path / "lock"
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        terms = guardian.Terms(lock=str(lock), lock_seconds=4)
        started = time.monotonic()
        waits = subprocess.Popen(
            [sys.executable, guardian.__file__, "1", terms.json(), "true"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **clock.environment},
        )
        try:
            time.sleep(2)  # half of its patience
            clock.jump(by)
            assert waits.communicate(timeout=10)[0] == b"locked\n"
        finally:
            waits.kill()
        assert time.monotonic() - started > 3.5


def claim(stack: Stack, lease_seconds: float) -> uuid.UUID | None:
    """Claims the next run for a worker that never renews."""
    with transaction(stack.sessions) as session:
        claimed = claims.claim_next(
            session, pool="default", owner="nobody", worker="nobody", devices=0, lease_seconds=lease_seconds
        )
    return claimed.run_id if claimed else None


def heartbeat(stack: Stack) -> float:
    with transaction(stack.sessions) as session:
        return max(at.timestamp() for at in session.scalars(select(RunAttempt.heartbeat_at)))
