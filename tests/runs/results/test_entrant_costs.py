"""What it took to make an entrant: all runs in its lineage once, with what it shares with others."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from steerboard.datasets.tables import Dataset
from steerboard.evaluation.report.document.contents import document_of
from steerboard.evaluation.tables import Entrant
from steerboard.platform.database import transaction
from steerboard.runs import progress_log
from steerboard.runs.progress_log import Batch
from steerboard.runs.state import attempt_outcomes
from steerboard.runs.state.lifecycle import InputRef
from steerboard.sharing.blocks import Grid
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.report.sections.costs import EntrantCost
from steerboard_contracts.watching.ledger import Phase, PhaseTime
from support.rows.evaluation_rows import Evaluated
from support.rows.run_world import World

SFT = {"run": "train", "method": "sft"}


def done(
    world: World,
    name: str,
    config: dict[str, Any],
    phase: Phase,
    seconds: float,
    summary: dict[str, Any] | None = None,
    **inputs: InputRef,
) -> uuid.UUID:
    """A run that was in one phase for all of its time."""
    run = world.create(name, config=config, inputs=inputs)
    claim = world.claim()
    assert claim is not None
    with transaction(world.sessions) as session:
        progress_log.write(session, claim, Batch(phases={phase: PhaseTime(seconds=seconds, tokens=1)}))
    world.act(claim, lambda session, row: attempt_outcomes.succeed(session, row, summary or {}, seconds))
    return run


@pytest.fixture
def made(world: World) -> Evaluated:
    """`sft` 10 s; `dt` and `mle` from it on labels of 4 s by a reward model of 7 s; an import that no one here made."""
    data = InputRef(dataset=world.dataset())
    sft = world.model(done(world, "sft", SFT, "update", 10.0, data=data))
    reward = world.model(done(world, "reward", SFT, "update", 7.0, data=data))
    score = done(world, "labelled", {"run": "score"}, "score", 4.0, data=data, reward=InputRef(model=reward))
    with transaction(world.sessions) as session:
        common = {"kind": "labelled", "rows": 1, "held_out_rows": 0, "content_hash": "l", "origin": {}}
        labels = Dataset(project_id=world.project.id, name="labels", run_id=score, **common)
        session.add(labels)
        session.flush()
        given = {"model": InputRef(model=sft), "data": InputRef(dataset=labels.id)}
    dt = world.model(done(world, "dt", SFT, "update", 3.0, **given))
    shared = {"log_prob_seconds": 2.0, "log_prob_seconds_shared": 1.5}
    mle = world.model(done(world, "mle", SFT, "update", 2.0, shared, **given))
    made = Evaluated(world.sessions, world.project, prompts=2)
    for name, model in (("dt", dt), ("mle", mle)):
        made.entrant(name, source="model", model_id=model)
    made.entrant("theirs")
    return made


def costs(made: Evaluated) -> dict[str, EntrantCost]:
    return {cost.entrant: cost for cost in made.report().costs}


def test_every_run_of_a_lineage_counts_once_and_what_is_shared_is_told(made: Evaluated) -> None:
    by_entrant = costs(made)
    assert list(by_entrant) == ["dt", "mle"]  # what was imported cost no one knows what
    dt = by_entrant["dt"]
    assert (dt.own_device_seconds, dt.runs, dt.ledger.device_seconds) == (3.0, 4, 24.0)
    assert by_entrant["mle"].own_device_seconds == 2.0
    assert [(phase.phase, phase.device_seconds) for phase in dt.ledger.phases] == [("score", 4.0), ("update", 20.0)]
    assert {(run.name, run.kind, run.device_seconds) for run in dt.shared} == {
        ("sft", "train", 10.0),
        ("reward", "train", 7.0),
        ("labelled", "score", 4.0),
    }
    assert dt.shared_device_seconds == 21.0


def test_log_probs_that_another_run_computed_are_a_cost_of_both(made: Evaluated) -> None:
    mle = costs(made)["mle"]
    phases = {phase.phase: phase.device_seconds for phase in mle.ledger.phases}
    assert phases == {"score": 4.0, "reference": 1.5, "update": 19.0}
    assert (mle.ledger.device_seconds, mle.shared_device_seconds) == (24.5, 22.5)


def test_one_model_asked_for_several_scores_shares_nothing_with_itself(made: Evaluated, world: World) -> None:
    alone = Evaluated(world.sessions, world.project, name="alone", prompts=2)
    with transaction(world.sessions) as session:
        model = session.get_one(Entrant, made.ids["dt"]).model_id
    for score in (0, 5):
        alone.entrant(f"dt_{score}", source="model", model_id=model, score=Condition.model_validate(score))
    for dt in costs(alone).values():
        assert (dt.runs, dt.ledger.device_seconds, dt.shared, dt.shared_device_seconds) == (4, 24.0, [], 0.0)


def test_a_model_that_no_run_made_has_no_cost_of_its_own(made: Evaluated) -> None:
    other = Evaluated(made.sessions, made.project, name="other", prompts=2)
    other.entrant("base", source="model", model_id=other.model("base", role="base").id)
    report = other.report()
    (base,) = report.costs
    assert (base.own_device_seconds, base.runs) == (None, 0)
    (costs,) = [fold for fold in document_of(report).folds if fold.title == "Costs"]
    (grid,) = costs.blocks
    assert isinstance(grid, Grid)
    assert [cell.text for cell in grid.rows[0]] == ["base", "unknown", "unknown", "unknown", ""]
