"""What runs cost by phase: adds up, counts once across attempts, reuse and shards, and keeps failed attempts apart."""

from __future__ import annotations

import uuid

import pytest
from sqlalchemy import text, update

from steerboard.platform.database import transaction
from steerboard.runs import ledger, progress_log, queries
from steerboard.runs.pipelines import service as pipelines
from steerboard.runs.progress_log import Batch
from steerboard.runs.state import attempt_outcomes, sweeper
from steerboard.runs.state.attempt_outcomes import Failure
from steerboard.runs.state.claims import Claim
from steerboard.runs.state.lifecycle import InputRef
from steerboard.runs.tables import Pipeline, Run, RunAttempt
from steerboard_contracts.stage.events import Paused
from steerboard_contracts.watching.ledger import Ledger, PhaseTime
from support.rows.run_world import World

SFT = {"run": "train", "method": "sft"}


def write(world: World, claim: Claim, **seconds: float) -> None:
    """What a stage reports of itself: ten tokens a second."""
    phases = {name: PhaseTime(seconds=value, tokens=int(10 * value)) for name, value in seconds.items()}
    with transaction(world.sessions) as session:
        progress_log.write(session, claim, Batch(phases=phases))


def succeed(world: World, claim: Claim, seconds: float) -> None:
    world.give_output(claim.run_id)
    world.act(claim, lambda session, run: attempt_outcomes.succeed(session, run, {}, seconds))
    sweeper.settle_all(world.sessions)


def fail(world: World, claim: Claim, seconds: float) -> None:
    failure = Failure("stage_crashed", "It crashed.", retryable=True)
    world.act(claim, lambda session, run: attempt_outcomes.fail(session, run, failure, seconds, 0.0))


def claimed(world: World, owner: str = "w1") -> Claim:
    claim = world.claim(owner=owner)
    assert claim is not None
    return claim


def of(world: World, run_id: uuid.UUID) -> Ledger:
    with transaction(world.sessions) as session:
        return ledger.ledger_of(session, session.get_one(Run, run_id))


def by_phase(cost: Ledger) -> dict[str, tuple[float, int]]:
    return {phase.phase: (pytest.approx(phase.device_seconds), phase.tokens) for phase in cost.phases}


def test_phases_add_up_to_the_attempt_and_idle_is_what_is_left(world: World) -> None:
    run = world.create()
    claim = claimed(world)
    write(world, claim, generate=1.0)
    write(world, claim, generate=2.0, update=1.5)  # all since the attempt began: it replaces the one before
    assert by_phase(of(world, run)) == {"generate": (2.0, 20), "update": (1.5, 15)}
    succeed(world, claim, 5.0)
    cost = of(world, run)
    assert by_phase(cost) == {"generate": (2.0, 20), "update": (1.5, 15), "idle": (1.5, 0)}
    assert sum(phase.device_seconds for phase in cost.phases) == pytest.approx(cost.device_seconds) == 5.0
    with transaction(world.sessions) as session:
        detail = queries.detail(session, session.get_one(Run, run))
    assert (detail.ledger, detail.attempts[0].phases) == (cost, cost.phases)


def test_seconds_count_for_every_device_of_the_worker(world: World) -> None:
    run = world.create()
    claim = claimed(world)
    with transaction(world.sessions) as session:
        session.execute(update(RunAttempt).values(devices=4))
    write(world, claim, update=2.0)
    assert by_phase(of(world, run)) == {"update": (8.0, 20)}


def test_a_killed_worker_and_the_attempt_after_it_count_once_each(world: World) -> None:
    """The first one's phases are known until the last ones written, which are newer than its heartbeat."""
    run = world.create(max_attempts=3)
    first = claimed(world)
    write(world, first, update=40.0)
    with transaction(world.sessions) as session:
        session.execute(text("UPDATE runs SET lease_expires_at = clock_timestamp() - interval '1 second'"))
    with transaction(world.sessions) as session:
        assert sweeper.expire_leases(session, retry_seconds=0) == 1
    second = claimed(world, "w2")
    write(world, second, update=10.0)
    succeed(world, second, 12.0)
    cost = of(world, run)
    assert by_phase(cost) == {"update": (10.0, 100), "idle": (2.0, 0)}
    assert (cost.device_seconds, cost.failed_device_seconds, cost.failed_attempts) == (12.0, 40.0, 1)
    with transaction(world.sessions) as session:
        lost, _ = queries.detail(session, session.get_one(Run, run)).attempts
    assert [(phase.phase, phase.device_seconds) for phase in lost.phases] == [("update", 40.0)]


def test_what_was_done_before_a_pause_did_not_fail(world: World) -> None:
    run = world.create()
    first = claimed(world)
    write(world, first, update=2.0)
    world.act(first, lambda session, row: attempt_outcomes.pause(session, row, Paused(step=4), 3.0))
    cost = of(world, run)
    assert by_phase(cost) == {"update": (2.0, 20), "idle": (1.0, 0)}
    assert (cost.device_seconds, cost.failed_device_seconds, cost.failed_attempts) == (3.0, 0.0, 0)
    assert world.get(run).device_seconds == cost.device_seconds


def test_a_late_word_of_a_lost_attempt_changes_nothing(world: World) -> None:
    run = world.create(max_attempts=3)
    first = claimed(world)
    fail(world, first, 3.0)
    second = claimed(world, "w2")
    write(world, second, score=1.0)
    with pytest.raises(Exception, match="no longer holds"):
        write(world, first, score=99.0)
    assert by_phase(of(world, run)) == {"score": (1.0, 10)}


def test_attempts_of_former_releases_are_unrecorded_and_not_idle(world: World) -> None:
    run = world.create()
    claim = claimed(world)
    with transaction(world.sessions) as session:
        session.execute(update(RunAttempt).values(phases=None))
    succeed(world, claim, 7.0)
    assert by_phase(of(world, run)) == {"unrecorded": (7.0, 0)}


def test_a_sharded_run_costs_what_its_shards_do_with_their_failures(world: World) -> None:
    model, data = world.model(), world.dataset()
    inputs = {"reward": InputRef(model=model), "data": InputRef(dataset=data)}
    parent = world.create(config={"run": "score", "shards": 2}, inputs=inputs, max_attempts=3)
    sweeper.settle_all(world.sessions)
    fail(world, claimed(world), 1.0)
    for _ in range(2):
        claim = claimed(world)
        write(world, claim, score=2.0)
        succeed(world, claim, 3.0)
    gathers = claimed(world)
    assert gathers.run_id == parent
    world.act(gathers, lambda session, run: attempt_outcomes.succeed(session, run, {}, 6.0))
    cost = of(world, parent)
    assert by_phase(cost) == {"score": (4.0, 40), "idle": (2.0, 0)}
    assert (cost.device_seconds, cost.failed_device_seconds, cost.failed_attempts) == (6.0, 1.0, 1)


def test_a_pipeline_counts_a_reused_stage_once_and_names_it(world: World) -> None:
    data = InputRef(dataset=world.dataset())
    source = world.create("first", config=SFT, inputs={"data": data}, reuse=True)
    fail(world, claimed(world), 2.0)
    claim = claimed(world)
    write(world, claim, update=4.0)
    succeed(world, claim, 5.0)
    with transaction(world.sessions) as session:
        pipeline = Pipeline(
            project_id=world.project.id, name="p", recipe={}, recipe_text="", settings={}, created_by="tester"
        )
        session.add(pipeline)
        session.flush()
        pipeline_id = pipeline.id
    options = {"inputs": {"data": data}, "reuse": True, "pipeline_id": pipeline_id}
    again = [world.create(name, config=SFT, **options) for name in ("sft", "same")]
    own = world.create("own", config={**SFT, "seed": 2}, **options)
    claim = claimed(world)
    write(world, claim, generate=1.0)
    succeed(world, claim, 1.0)
    assert [world.get(run).reused_from_id for run in (*again, own)] == [source, source, None]
    with transaction(world.sessions) as session:
        cost = pipelines.detail(session, session.get_one(Pipeline, pipeline_id)).ledger
    assert by_phase(cost) == {"generate": (1.0, 10), "update": (4.0, 40), "idle": (1.0, 0)}
    assert (cost.device_seconds, cost.reused, cost.reused_device_seconds) == (6.0, ["sft", "same"], 5.0)
    assert (cost.failed_device_seconds, cost.failed_attempts) == (0.0, 0)
