"""Rounds that a judge's fall has ended: later rounds are skipped, and what follows takes what was kept."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from steerboard.platform.database import transaction
from steerboard.runs.pipelines import service as pipelines
from steerboard.runs.state import attempt_outcomes, sweeper
from steerboard.runs.state.attempt_outcomes import Failure
from steerboard.runs.state.dependencies import settle_pending
from steerboard.runs.tables import Pipeline, RunLog
from support.rows.rounds_world import Rounds
from support.rows.run_world import World


@pytest.fixture
def rounds(world: World) -> Rounds:
    return Rounds(world)


THIRD = ["answers-3", "check-3", "tuned-3"]


def test_without_a_fall_every_round_is_run_and_the_last_one_goes_on(rounds: Rounds) -> None:
    rounds.work()
    assert set(rounds.states().values()) == {"succeeded"}
    assert rounds.inputs("more")["model"] == rounds.runs["tuned-3"]
    assert rounds.entrants()[1] == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_a_fall_skips_the_rounds_after_it_and_the_pipeline_succeeds(rounds: Rounds) -> None:
    rounds.work(fall=2)
    assert rounds.skipped() == THIRD
    reason = "not run: after round 2, referee fell from 0.31 to 0.12 on 100 prompts (p 0.003)"
    assert {rounds.world.get(rounds.runs[name]).reason for name in THIRD} == {reason}
    pipeline = rounds.pipeline()
    assert (pipeline.state, pipeline.stages) == ("succeeded", {"succeeded": 9, "skipped": 3})
    assert pipeline.ended_at is not None


def test_what_follows_takes_the_round_before_the_fall_and_lists_have_every_round_that_was_run(rounds: Rounds) -> None:
    rounds.work(fall=2)
    assert rounds.inputs("more")["model"] == rounds.runs["tuned-1"]
    assert rounds.inputs("again")["data"] == rounds.runs["answers-1"]
    sources, scores = rounds.entrants()
    assert sources == [rounds.start, *(rounds.runs[name] for name in ("tuned-1", "tuned-2", "more"))]
    # The items of the config are still those of their entrants.
    assert scores == [0.0, 1.0, 2.0, 4.0]
    with transaction(rounds.world.sessions) as session:
        lines = session.scalars(select(RunLog.message).where(RunLog.run_id == rounds.runs["more"])).all()
    assert lines == ["The rounds were stopped; model is that of round 1, before the fall, not tuned-3."]


def test_a_fall_in_the_last_round_skips_nothing_and_its_policy_is_not_the_result(rounds: Rounds) -> None:
    rounds.work(fall=3)
    assert rounds.skipped() == []
    assert rounds.inputs("more")["model"] == rounds.runs["tuned-2"]
    assert rounds.inputs("again")["data"] == rounds.runs["answers-2"]
    assert rounds.entrants()[0][3] == rounds.runs["tuned-3"]


def test_after_a_fall_in_the_first_round_the_result_is_what_the_rounds_began_with(rounds: Rounds) -> None:
    rounds.work(fall=1)
    assert rounds.inputs("more")["model"] == rounds.start
    # No round that was kept has answers.
    assert rounds.state("again") == "skipped"
    assert rounds.world.get(rounds.runs["again"]).reason.endswith("; it needs answers-3, and no round was kept")
    assert len(rounds.entrants()[0]) == 3
    assert rounds.pipeline().state == "succeeded"


def test_a_server_that_dies_between_any_two_runs_decides_nothing_differently(rounds: Rounds) -> None:
    rounds.work(fall=2, settle=False)
    seen = []
    for _ in range(20):
        # Killed before the commit: nothing of it is left.
        with rounds.world.sessions() as session:
            settle_pending(session, limit=1)
            session.flush()
            session.rollback()
        seen.append(rounds.skipped())
        with transaction(rounds.world.sessions) as session:
            if not settle_pending(session, limit=1):
                break
    assert seen[0] == []
    assert [len(decided) for decided in seen] == sorted(len(decided) for decided in seen)
    rounds.work()
    assert rounds.skipped() == THIRD
    assert rounds.inputs("more")["model"] == rounds.runs["tuned-1"]


def test_a_resumed_run_keeps_the_inputs_that_the_stop_gave_it(rounds: Rounds) -> None:
    rounds.work(fall=2, settle=False)
    sweeper.settle_all(rounds.world.sessions)
    claim = rounds.world.claim()
    assert claim is not None
    assert rounds.world.get(claim.run_id).name == "more"
    failure = Failure("bad_input", "Row 3 is empty.", retryable=False)
    rounds.world.act(claim, lambda session, run: attempt_outcomes.fail(session, run, failure, 1.0, 0.0))
    rounds.work()
    assert rounds.state("report") == "failed"
    with transaction(rounds.world.sessions) as session:
        assert pipelines.resume(session, session.get_one(Pipeline, rounds.id), "ann") == 2
    rounds.work()
    assert rounds.skipped() == THIRD
    assert rounds.inputs("more")["model"] == rounds.runs["tuned-1"]
    assert rounds.entrants()[1] == [0.0, 1.0, 2.0, 4.0]
    assert rounds.pipeline().state == "succeeded"
