"""A report shows that people changed held-out rows, where its figures are measured on them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import update

from steerboard.datasets.held_out_changes import as_origin
from steerboard.datasets.tables import Dataset
from steerboard.evaluation.gate.decision import decide
from steerboard.evaluation.gate.rules import GateRules
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.database import new_id, transaction
from steerboard_contracts.held_out_changes import HeldOutChange
from steerboard_contracts.report.evaluation import EvaluationReport
from support.rows.evaluation_rows import Evaluated

Make = Callable[..., Evaluated]


@pytest.fixture
def made(evaluated: Make) -> Evaluated:
    evaluation = evaluated(prompts=24)
    evaluation.entrant("sft")
    evaluation.entrant("dt")
    return evaluation


def edited(made: Evaluated, *, flipped: int = 0, dropped: int = 0) -> Dataset:
    id_ = new_id()
    change = HeldOutChange(dataset="edited", dataset_id=id_, flipped=flipped, dropped=dropped)
    with transaction(made.sessions) as session:
        dataset = Dataset(
            id=id_,
            project_id=made.project.id,
            name="edited",
            kind="preferences",
            rows=30,
            held_out_rows=10,
            content_hash="edited",
            origin={"type": "edit", **as_origin([change])},
        )
        session.add(dataset)
    return dataset


def asked_on(made: Evaluated, dataset: Dataset, split: str) -> None:
    origin = {"dataset": dataset.name, "dataset_id": str(dataset.id), "split": split}
    with transaction(made.sessions) as session:
        session.execute(update(Evaluation).where(Evaluation.id == made.id).values(prompts_from=origin))


def reserved(report: EvaluationReport) -> list[str]:
    assert report.headline is not None
    return [reservation.text for reservation in report.headline.reservations if reservation.code == "held_out_changed"]


def test_a_reward_models_accuracy_on_changed_pairs_is_marked_in_the_report_and_in_the_gate(made: Evaluated) -> None:
    edited(made, flipped=1, dropped=2)
    summary = {"margins": [1.0] * 9 + [-1.0], "dataset": "edited"}
    made.rewards({"sft": [0.0] * 24, "dt": [1.0] * 24}, summary=summary)
    report = made.report()
    words = "1 flipped and 2 dropped in edited"
    assert reserved(report) == [f"Held-out rows were changed by people: {words}."]
    assert f"held-out rows were changed by people: {words}" in report.warnings
    assert [(change.dataset, change.flipped) for change in report.rewards[0].held_out_changes] == [("edited", 1)]
    rule = {"metric": "accuracy", "by": "reward", "op": ">", "value": 0.5}
    (result,) = decide(report, GateRules(rules=[rule], min_n=5)).rules
    assert (result.outcome, result.why) == ("pass", f"0.9 is > 0.5; people changed held-out pairs: {words}")


@pytest.mark.parametrize(("change", "outcome"), [({"flipped": 1, "dropped": 2}, "fail"), ({}, "pass")])
def test_a_gate_can_refuse_changed_held_out_rows(made: Evaluated, change: dict[str, int], outcome: str) -> None:
    edited(made, **change)
    made.rewards({"sft": [0.0] * 24, "dt": [1.0] * 24}, summary={"margins": [1.0] * 10, "dataset": "edited"})
    (result,) = decide(made.report(), GateRules(rules=[{"metric": "held_out_changes", "op": "==", "value": 0}])).rules
    assert (result.outcome, result.value) == (outcome, sum(change.values()))
    assert ("1 flipped and 2 dropped in edited" in (result.why or "")) == (outcome == "fail")


def test_prompts_of_which_some_were_dropped_are_marked(made: Evaluated) -> None:
    asked_on(made, edited(made, dropped=2), "held_out")
    assert "held-out rows were changed by people: 2 dropped in edited" in made.report().warnings


@pytest.mark.parametrize(("split", "change"), [("train", {"dropped": 2}), ("held_out", {"flipped": 1})])
def test_prompts_that_no_change_touched_are_not_marked(made: Evaluated, split: str, change: dict[str, int]) -> None:
    asked_on(made, edited(made, **change), split)
    assert made.report().held_out_changes == []
