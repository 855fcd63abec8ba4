"""Tokens of a pipeline's rounds: what training read, however large its data is."""

from __future__ import annotations

from steerboard.evaluation.rounds.loader import read_rounds
from steerboard.evaluation.rounds.rounds_report import rounds_report
from steerboard.platform.database import transaction
from steerboard.runs import progress_log
from steerboard.runs.progress_log import Batch
from steerboard.runs.state import attempt_outcomes, sweeper
from steerboard.runs.tables import Pipeline
from steerboard_contracts.watching.ledger import Phase, PhaseTime
from support.rows.rounds_world import Rounds
from support.rows.run_world import World


def train_first_round(world: World, rounds: Rounds, phases: dict[Phase, PhaseTime]) -> int | None:
    """Its trained tokens. The data of either stage has 900."""
    for name in ("answers-1", "tuned-1"):
        assert trained_tokens(world, rounds) is None
        claim = world.claim()
        assert claim is not None
        assert claim.run_id == rounds.runs[name]
        if name == "tuned-1" and phases:
            with transaction(world.sessions) as session:
                progress_log.write(session, claim, Batch(phases=phases))
        world.give_output(claim.run_id)
        world.act(claim, lambda session, run: attempt_outcomes.succeed(session, run, {"tokens": 900}, 5.0))
        sweeper.settle_all(world.sessions)
    return trained_tokens(world, rounds)


def trained_tokens(world: World, rounds: Rounds) -> int | None:
    with transaction(world.sessions) as session:
        report = rounds_report(read_rounds(session, session.get_one(Pipeline, rounds.id)))
    return report.rounds[0].cost.trained_tokens


def test_trained_tokens_are_those_that_the_steps_read_and_not_those_of_the_data(world: World) -> None:
    tokens: dict[Phase, int] = {"update": 30, "reference": 200, "evaluate": 50}
    phases = {phase: PhaseTime(seconds=1.0, tokens=count) for phase, count in tokens.items()}
    assert train_first_round(world, Rounds(world), phases) == 30


def test_trained_tokens_of_a_run_that_counted_none_are_unknown(world: World) -> None:
    assert train_first_round(world, Rounds(world), {}) is None
