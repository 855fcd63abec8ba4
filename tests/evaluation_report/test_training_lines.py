"""What a recipe's report has of its policies' training, by the summaries of their runs."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from steerboard.evaluation.recipe_stage.training import training_lines
from steerboard.evaluation.report.training import TrainingFacts, training_of
from steerboard.registry.tables import Model
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.sections.entrants import EntrantRow

GAIN = "eval_condition_gain_shuffled"
SUMMARY = {"steps": 100, GAIN: 0.35, f"{GAIN}_low": 0.25, f"{GAIN}_high": 0.45, "condition_gain_prompts": 100}
KEPT = "best of 10 evaluations: step 60 of 100, held-out loss 3.21; the last was 3.4"


def facts(summary: Any, made_here: bool = True) -> TrainingFacts:
    return training_of(Model(info={"summary": summary}, run_id=uuid.uuid4() if made_here else None))


def row(name: str, model: str | None, facts: TrainingFacts) -> EntrantRow:
    return EntrantRow(
        name=name,
        source="model",
        method=None,
        score=None,
        family=None,
        model=model,
        content_hash=None,
        responses=1,
        missing=0,
        length=Estimate(value=1.0, n=1),
        truncated=None,
        condition_gain=facts.condition_gain,
        condition_gain_step=facts.step,
        kept=facts.kept,
    )


def test_a_policy_has_one_line_with_its_gain_and_one_with_the_weights_it_kept():
    kept = facts({**SUMMARY, "kept_step": 60, "kept": KEPT})
    rows = [row("dt_5", "dt", kept), row("dt_-5", "dt", kept), row("old", "other", facts(SUMMARY))]
    gain = "held-out answers gain 0.35 nats by their own condition over another row's, 95% interval 0.25 to 0.45"
    assert training_lines([*rows, row("sft", "sft", facts({"steps": 9})), row("theirs", None, facts({}))]) == [
        f"dt has the weights that were the {KEPT}.",
        f"dt: {gain}, at step 60.",
        f"other: {gain}, at step 100.",
    ]


def test_a_gain_of_few_prompts_has_no_interval():
    (line,) = training_lines([row("dt", "dt", facts({"steps": 9, GAIN: 0.5}))])
    assert line == "dt: held-out answers gain 0.5 nats by their own condition over another row's, at step 9."


@pytest.mark.parametrize("summary", [None, [], "x", {GAIN: "much"}, {**SUMMARY, "kept": ["x"]}, {"steps": {}}])
def test_a_summary_that_cannot_be_read_is_none(summary):
    assert facts(summary) == TrainingFacts()


def test_what_an_imported_model_claims_of_its_training_is_not_taken():
    assert facts(SUMMARY, made_here=False) == TrainingFacts()
