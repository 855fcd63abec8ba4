"""Everyone at once: workers, sweepers and people who cancel and resume, on a web of runs."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from itertools import pairwise

import pytest
from sqlalchemy import select, text

from steerboard.platform.database import transaction
from steerboard.platform.leases import LeaseLost
from steerboard.runs import progress_log
from steerboard.runs.errors import RunNotActive, RunNotResumable
from steerboard.runs.progress_log import Batch
from steerboard.runs.state import attempt_outcomes, claims, lifecycle, sweeper
from steerboard.runs.state.attempt_outcomes import Failure
from steerboard.runs.state.claims import Claim
from steerboard.runs.state.transitions import ALLOWED, ENDED
from steerboard.runs.tables import Run, RunAttempt, RunTransition
from support.rows.run_world import World

SECONDS = 2.0


class Crowd:
    """Actors that share nothing but the database. An unexpected exception (a deadlock, say) ends the test."""

    def __init__(self, world: World, runs: list[object], seed: int) -> None:
        self.world = world
        self.runs = runs
        self.seed = seed
        self.end = time.monotonic() + SECONDS
        self.errors: list[BaseException] = []
        self.writers: list[tuple[object, int]] = []

    def go(self) -> None:
        actors = [self.work] * 4 + [self.meddle] * 2 + [self.sweep] * 2
        threads = [
            threading.Thread(target=self._guard, args=(actor, random.Random(self.seed * 100 + number)))
            for number, actor in enumerate(actors)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.errors:
            raise self.errors[0]

    def _guard(self, actor: object, chance: random.Random) -> None:
        assert callable(actor)
        try:
            while time.monotonic() < self.end and not self.errors:
                actor(chance)
        except BaseException as error:
            self.errors.append(error)

    def work(self, chance: random.Random) -> None:
        claim = self.world.claim(owner=f"w{chance.random()}", lease_seconds=chance.choice([0.0, 0.05, 30.0]))
        if claim is None:
            time.sleep(0.005)
            return
        with contextlib.suppress(LeaseLost):
            self._attempt(claim, chance)

    def _attempt(self, claim: Claim, chance: random.Random) -> None:
        for step in range(chance.randrange(3)):
            with transaction(self.world.sessions) as session:
                progress_log.write(session, claim, Batch(progress={"done": step}, metrics={("loss", step): 1.0}))
            with transaction(self.world.sessions) as session:
                claims.renew(session, claim, chance.choice([0.0, 30.0]))
        failure = Failure("stage_crashed", "boom", retryable=chance.random() < 0.7)
        ending = chance.choice(["succeed", "succeed", "fail", "stop", "vanish"])
        with transaction(self.world.sessions) as session:
            run = claims.fenced(session, claim)
            if run.cancel_requested_at is not None:
                attempt_outcomes.cancel(session, run, 1.0)
            elif ending == "succeed":
                attempt_outcomes.succeed(session, run, {}, 1.0)
            elif ending == "fail":
                attempt_outcomes.fail(session, run, failure, 1.0, 0.0)
            elif ending == "stop":
                attempt_outcomes.stop(session, run, "stopped", 1.0)
        if ending == "succeed":
            self.writers.append((claim.run_id, claim.attempt))

    def meddle(self, chance: random.Random) -> None:
        """Cancels or resumes several runs in one request, in no order."""
        act = chance.choice([lifecycle.request_cancel, lifecycle.resume, lifecycle.resume])
        with transaction(self.world.sessions) as session:
            for run_id in chance.sample(self.runs, 2):
                try:
                    act(session, session.get_one(Run, run_id), "ann")
                except (RunNotActive, RunNotResumable):
                    continue
        time.sleep(0.01)

    def sweep(self, chance: random.Random) -> None:
        with transaction(self.world.sessions) as session:
            sweeper.expire_leases(session, 0.0)
        sweeper.settle_all(self.world.sessions)
        time.sleep(0.005)


def web(world: World, chance: random.Random) -> list[object]:
    """Runs in layers, each with up to two upstream runs, some of them sharded."""
    runs: list[object] = []
    for number in range(16):
        upstream = chance.sample(runs, min(len(runs), chance.randrange(3)))
        sharded = {"run": "generate", "prompts": ["hi"], "shards": 2} if chance.random() < 0.25 else None
        inputs = {f"parts.{place}": run for place, run in enumerate(upstream)}
        runs.append(world.create(f"r{number}", config=sharded, inputs=inputs, max_attempts=3))
    return runs


@pytest.mark.parametrize("seed", [1, 2])
def test_no_crowd_breaks_the_rules_of_a_runs_life(world: World, seed: int) -> None:
    runs = web(world, random.Random(seed))
    crowd = Crowd(world, runs, seed)
    crowd.go()
    finish_everything(world)
    with transaction(world.sessions) as session:
        everyone = session.scalars(select(Run)).all()
        for run in everyone:
            steps = session.scalars(
                select(RunTransition).where(RunTransition.run_id == run.id).order_by(RunTransition.id)
            ).all()
            states = [None, *(step.to_state for step in steps)]
            assert all(after in ALLOWED[before] for before, after in pairwise(states)), states
            assert [step.from_state for step in steps] == states[:-1]
            assert run.state == states[-1]
            assert run.state in ENDED
            assert run.lease_owner is None
            attempts = session.scalars(select(RunAttempt).where(RunAttempt.run_id == run.id)).all()
            assert sorted(attempt.attempt for attempt in attempts) == list(range(1, run.attempt + 1))
            assert all(attempt.outcome is not None for attempt in attempts)
            assert [attempt.outcome for attempt in attempts].count("succeeded") == (run.state == "succeeded")


def finish_everything(world: World) -> None:
    """No more meddling: what is left is worked off by one honest worker and the sweeper."""
    while True:
        with transaction(world.sessions) as session:
            session.execute(text("UPDATE runs SET lease_expires_at = clock_timestamp() WHERE state = 'running'"))
        with transaction(world.sessions) as session:
            sweeper.expire_leases(session, 0.0)
        sweeper.settle_all(world.sessions)
        claim = world.claim()
        if claim is None:
            return
        world.act(claim, lambda session, run: attempt_outcomes.succeed(session, run, {}, 1.0))
