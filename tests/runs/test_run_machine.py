"""Whatever happens to runs, in whatever order: one owner, rising attempts, and nothing leaves a final state.

A Hypothesis state machine claims, renews, expires, completes, cancels and resumes, keeps every claim that was ever
given out, and checks them all against the rows after each step. The history is what the platform itself recorded
(`run_transitions`, `run_attempts`), compared with what the machine saw happen.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from steerboard.platform.database import transaction
from steerboard.platform.leases import LeaseLost
from steerboard.platform.settings import get_settings
from steerboard.runs import progress_log
from steerboard.runs.errors import RunNotActive, RunNotResumable
from steerboard.runs.progress_log import Batch
from steerboard.runs.state import attempt_outcomes, claims, lifecycle, sweeper
from steerboard.runs.state.attempt_outcomes import Failure
from steerboard.runs.state.claims import Claim
from steerboard.runs.state.transitions import ALLOWED
from steerboard.runs.tables import Run, RunAttempt, RunTransition
from support.rows.run_world import World

OWNERS = st.sampled_from(["a", "b", "c"])
_pools = itertools.count()
MOST_INTERRUPTIONS = 4


@dataclass
class Expected:
    """What the machine has seen of one run. `holder` is the only claim that may act for it."""

    state: str = "queued"
    attempt: int = 0
    attempts_left: int = 3
    interruptions_left: int = MOST_INTERRUPTIONS
    cancelling: bool = False
    holder: Claim | None = None
    history: list[str] = field(default_factory=lambda: ["pending", "queued"])

    def move(self, *states: str) -> None:
        self.state = states[-1]
        self.history += states
        if self.state != "running":
            self.holder = None


class RunMachine(RuleBasedStateMachine):
    world: World  # set by the test

    def __init__(self) -> None:
        super().__init__()
        self.pool = f"machine-{next(_pools)}"
        self.runs: dict[uuid.UUID, Expected] = {}
        self.queue: list[uuid.UUID] = []
        self.claims: list[Claim] = []

    given_out: Bundle[Claim] = Bundle("claims")
    created: Bundle[uuid.UUID] = Bundle("runs")

    @initialize(target=created)
    def begin(self) -> uuid.UUID:
        return self.create()

    @precondition(lambda self: len(self.runs) < 4)
    @rule(target=created)
    def create(self) -> uuid.UUID:
        run_id = self.world.create(f"{self.pool}-{len(self.runs)}", pool=self.pool, max_attempts=3)
        self.runs[run_id] = Expected()
        self.queue.append(run_id)
        return run_id

    @precondition(lambda self: self.queue)
    @rule(target=given_out, owner=OWNERS)
    def claim(self, owner: str) -> Claim:
        claim = self.world.claim(self.pool, owner)
        assert claim is not None
        assert claim.run_id in self.queue
        self.queue.remove(claim.run_id)
        run = self.runs[claim.run_id]
        run.attempt += 1
        assert claim.attempt == run.attempt, "an attempt's number rises by one with each claim"
        run.move("running")
        run.holder = claim
        self.claims.append(claim)
        return claim

    @precondition(lambda self: not self.queue)
    @rule(owner=OWNERS)
    def find_nothing(self, owner: str) -> None:
        assert self.world.claim(self.pool, owner) is None

    @rule(claim=given_out)
    def renew(self, claim: Claim) -> None:
        def act() -> None:
            with transaction(self.world.sessions) as session:
                renewal = claims.renew(session, claim, 30)
            assert renewal.wishes.cancel == self.runs[claim.run_id].cancelling

        self.holder_only(claim, act)

    @rule(claim=given_out)
    def report_progress(self, claim: Claim) -> None:
        def act() -> None:
            with transaction(self.world.sessions) as session:
                progress_log.write(session, claim, Batch(progress={"done": claim.attempt}, metrics={("loss", 1): 1.0}))

        self.holder_only(claim, act)

    @rule(claim=given_out)
    def complete(self, claim: Claim) -> None:
        def act() -> None:
            self.world.act(claim, lambda session, run: attempt_outcomes.succeed(session, run, {}, 1.0))
            self.runs[claim.run_id].move("succeeded")

        self.holder_only(claim, act)

    @rule(claim=given_out, retryable=st.booleans())
    def fail(self, claim: Claim, retryable: bool) -> None:
        failure = Failure("stage_crashed", "boom", retryable=retryable)

        def act() -> None:
            self.world.act(claim, lambda session, run: attempt_outcomes.fail(session, run, failure, 1.0, 0.0))
            self.runs[claim.run_id].attempts_left -= 1
            self.attempt_ended(claim.run_id, again=retryable and self.runs[claim.run_id].attempts_left > 0)

        self.holder_only(claim, act)

    @rule(claim=given_out)
    def stop_the_worker(self, claim: Claim) -> None:
        def act() -> None:
            self.world.act(claim, lambda session, run: attempt_outcomes.stop(session, run, "the worker stops", 1.0))
            self.attempt_ended(claim.run_id, again=True)

        self.holder_only(claim, act)

    @precondition(lambda self: any(run.holder for run in self.runs.values()))
    @rule(run_id=created)
    def expire(self, run_id: uuid.UUID) -> None:
        """The lease of one run ends; two sweepers in a row find at most that one."""
        with transaction(self.world.sessions) as session:
            session.execute(
                text(
                    "UPDATE runs SET lease_expires_at = clock_timestamp() - interval '1 s' "
                    "WHERE id = :id AND state = 'running'"
                ),
                {"id": run_id},
            )
        held = self.runs[run_id].holder is not None
        for ended in (int(held), 0):
            with transaction(self.world.sessions) as session:
                assert sweeper.expire_leases(session, retry_seconds=0) == ended
        if held:
            self.runs[run_id].interruptions_left -= 1
            self.attempt_ended(run_id, again=self.runs[run_id].interruptions_left > 0)

    @rule(run_id=created)
    def cancel(self, run_id: uuid.UUID) -> None:
        run = self.runs[run_id]
        try:
            with transaction(self.world.sessions) as session:
                lifecycle.request_cancel(session, session.get_one(Run, run_id), "ann")
        except RunNotActive:
            assert run.state in ("succeeded", "failed")
            return
        if run.state == "running":
            run.cancelling = True
        elif run.state == "queued":
            self.queue.remove(run_id)
            run.move("cancelled")
        else:
            assert run.state == "cancelled"

    @rule(claim=given_out)
    def see_the_cancellation(self, claim: Claim) -> None:
        def cancel(session: Session, run: Run) -> None:
            if run.cancel_requested_at is not None:
                attempt_outcomes.cancel(session, run, 1.0)

        def act() -> None:
            self.world.act(claim, cancel)
            if self.runs[claim.run_id].cancelling:
                self.attempt_ended(claim.run_id, again=True)

        self.holder_only(claim, act)

    @rule(run_id=created)
    def resume(self, run_id: uuid.UUID) -> None:
        run = self.runs[run_id]
        try:
            with transaction(self.world.sessions) as session:
                lifecycle.resume(session, session.get_one(Run, run_id), "ann")
        except RunNotResumable:
            assert run.state not in ("failed", "cancelled")
            return
        assert run.state in ("failed", "cancelled")
        run.attempts_left, run.interruptions_left = 3, MOST_INTERRUPTIONS
        run.cancelling = False
        run.move("pending", "queued")
        self.queue.append(run_id)

    @rule()
    def sweep(self) -> None:
        sweeper.settle_all(self.world.sessions)

    def holder_only(self, claim: Claim, act: Callable[[], None]) -> None:
        """`act` succeeds for the claim that holds its run, and for every other one raises and changes nothing."""
        if self.runs[claim.run_id].holder == claim:
            act()
            return
        try:
            act()
        except LeaseLost:
            return
        raise AssertionError(f"{claim} acted without holding its run")

    def attempt_ended(self, run_id: uuid.UUID, *, again: bool) -> None:
        run = self.runs[run_id]
        if run.cancelling:
            run.move("cancelled")
        elif again:
            run.move("queued")
            self.queue.append(run_id)
        else:
            run.move("failed")

    @invariant()
    def the_rows_are_what_was_seen(self) -> None:
        with transaction(self.world.sessions) as session:
            for run in session.scalars(select(Run).where(Run.id.in_(self.runs))):
                expected = self.runs[run.id]
                owner = expected.holder.owner if expected.holder else None
                assert (run.state, run.attempt, run.lease_owner) == (expected.state, expected.attempt, owner)
                assert (run.lease_expires_at is None) == (owner is None)
                assert run.progress is None or run.progress["done"] <= run.attempt

    def teardown(self) -> None:
        with transaction(self.world.sessions) as session:
            for run_id, expected in self.runs.items():
                moves = session.execute(
                    select(RunTransition.from_state, RunTransition.to_state)
                    .where(RunTransition.run_id == run_id)
                    .order_by(RunTransition.id)
                ).all()
                assert [to for _, to in moves] == expected.history
                assert [before for before, _ in moves] == [None, *expected.history[:-1]]
                assert all(to in ALLOWED[before] for before, to in moves)
                attempts = session.execute(
                    select(RunAttempt.attempt, RunAttempt.outcome)
                    .where(RunAttempt.run_id == run_id)
                    .order_by(RunAttempt.attempt)
                ).all()
                assert [number for number, _ in attempts] == list(range(1, expected.attempt + 1))
                unended = [number for number, outcome in attempts if outcome is None]
                assert unended == ([expected.attempt] if expected.state == "running" else [])
            # The next example shares the database, and its sweepers look at all runs in it.
            session.execute(
                text("UPDATE runs SET lease_expires_at = 'infinity' WHERE pool = :pool AND state = 'running'"),
                {"pool": self.pool},
            )


@pytest.mark.parametrize("examples", [10, pytest.param(40, marks=pytest.mark.long)])
def test_runs_keep_one_owner_and_their_final_states_whatever_happens_to_them(
    world: World, examples: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEERBOARD_MAX_INTERRUPTIONS", str(MOST_INTERRUPTIONS))
    get_settings.cache_clear()
    RunMachine.world = world
    run_state_machine_as_test(
        RunMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
