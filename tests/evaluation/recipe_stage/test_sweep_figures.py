"""The report of a sweep: the best variant, and which others are within noise of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from steerboard.evaluation.sweeps.loader import Rewards, StageFacts, SweepFacts
from steerboard.evaluation.sweeps.sweep_report import sweep_report
from steerboard_contracts.recipes.sweep import PlannedHalving, PlannedRung, PlannedSweep, PlannedVariant
from steerboard_contracts.report.sweep import SweepReport

BETAS = [0.01, 0.1, 0.3, 0.5]
PROMPTS = 40


def planned(**given: Any) -> PlannedSweep:
    variants = [
        PlannedVariant(number=n, values={"dpo.beta": beta}, judged=f"dpo-{n}", stages=[f"dpo-{n}"])
        for n, beta in enumerate(BETAS, start=1)
    ]
    fields: dict[str, Any] = {"metric": "report", "goal": "maximize", "stage": "report", **given}
    return PlannedSweep(search="grid", seed=None, fields=["dpo.beta"], variants=variants, **fields)


def stages(*summaries: dict[str, Any], state: str = "succeeded") -> dict[str, StageFacts]:
    given = summaries or tuple({} for _ in BETAS)
    return {f"dpo-{n}": StageFacts(state, 10.0 * n, summary) for n, summary in enumerate(given, start=1)}


def judged(*offsets: float, prompts: int = PROMPTS, noise: float = 0.3) -> SweepReport:
    """Prompts differ by far more than variants do: only differences on the same prompt can tell these apart."""
    random = np.random.default_rng(1)
    hardness = random.normal(0, 10, size=(prompts, 1))
    values = hardness + np.array(offsets) + random.normal(0, noise, size=(prompts, len(offsets)))
    rewards = Rewards("independent", "z", [f"dpo-{n}" for n in range(1, len(offsets) + 1)], values)
    return sweep_report(SweepFacts("dpo-sweep-1", planned(), stages(), 0, rewards))


def test_differences_by_prompt_tell_variants_apart_that_their_intervals_do_not() -> None:
    sweep = judged(0.0, 0.5, 2.0, 1.0)
    assert (sweep.best, sweep.within_noise) == (3, [])
    ends = [(row.figure.low or 0, row.figure.high or 0) for row in sweep.variants if row.figure]
    assert max(low for low, _ in ends) < min(high for _, high in ends)
    assert [row.within_noise for row in sweep.variants] == [False, False, None, False]
    first = sweep.variants[0]
    assert first.behind is not None
    assert first.behind.value == pytest.approx(2.0, abs=0.2)
    assert first.behind.low is not None
    assert 1.5 < first.behind.low < first.behind.value < (first.behind.high or 0)
    assert sweep.variants[2].behind is None
    assert sweep.verdict.startswith("Variant 3 (dpo.beta 0.3) has the highest mean reward by independent, ")
    assert sweep.verdict.endswith("; by their differences by prompt, it is better than every other.")
    assert (sweep.units, sweep.prompts, sweep.compared_by) == ("z", PROMPTS, "prompts")


def test_variants_that_do_not_differ_are_within_noise_and_the_report_names_them() -> None:
    sweep = judged(0.0, 1.95, 2.0, 1.97)
    assert {sweep.best, *sweep.within_noise} == {2, 3, 4}
    numbers = " and ".join(map(str, sweep.within_noise))
    assert sweep.verdict.endswith(f"; by their differences by prompt, variants {numbers} are within noise of it.")
    assert any("evaluate it on other prompts" in note for note in sweep.notes)
    every = judged(0.0, 0.0, 0.0, 0.0)
    assert len(every.within_noise) == 3
    assert every.verdict.endswith("every other is within noise of it.")
    few = judged(0.0, 1.0, 2.0, 3.0, prompts=5)
    assert len(few.within_noise) == 3
    assert few.verdict.endswith("5 prompts are too few to tell it from others.")


def test_the_best_is_still_found_where_a_variant_has_no_rewards() -> None:
    sweep = judged(0.0, 0.5, 2.0)
    assert sweep.best == 3
    assert sweep.variants[3].figure is None
    assert sweep.verdict.endswith("it is better than every other. 1 of 4 variants have no figure.")
    assert [row.device_seconds for row in sweep.variants] == [10.0, 20.0, 30.0, 40.0]


def test_variants_that_share_the_judged_stage_have_one_figure() -> None:
    plan = planned()
    plan.variants[3].judged = "dpo-3"
    random = np.random.default_rng(2)
    values = random.normal(size=(PROMPTS, 3)) + np.array([0, 0, 9])
    rewards = Rewards("reward", "raw", ["dpo-1", "dpo-2", "dpo-3"], values)
    sweep = sweep_report(SweepFacts("p-1", plan, stages(), 0, rewards))
    assert (sweep.best, sweep.within_noise, sweep.units) == (3, [4], "raw")
    assert sweep.variants[3].figure == sweep.variants[2].figure


def test_accuracies_of_training_are_held_against_each_other_by_their_intervals() -> None:
    given = planned(metric="dpo.held_out_accuracy", stage=None, figure="held_out_accuracy")
    measured = [{"held_out_accuracy": share, "pairs": 400} for share in (0.5, 0.7, 0.72, 0.9)]
    sweep = sweep_report(SweepFacts("p-1", given, stages(*measured)))
    assert (sweep.best, sweep.within_noise, sweep.compared_by) == (4, [], "intervals")
    close = [{**facts, "held_out_accuracy": min(facts["held_out_accuracy"], 0.72)} for facts in measured]
    again = sweep_report(SweepFacts("p-1", given, stages(*close)))
    assert (again.best, again.within_noise) == (3, [2, 4])


def test_the_lowest_loss_is_the_best_and_noise_is_not_guessed() -> None:
    given = planned(metric="dpo.eval_loss", stage=None, figure="eval_loss", goal="minimize")
    losses = [{"eval_loss": loss, "steps": 9} for loss in (0.7, 0.5, 0.6, 0.9)]
    sweep = sweep_report(SweepFacts("p-1", given, stages(*losses)))
    assert (sweep.best, sweep.within_noise, sweep.compared_by) == (2, [], None)
    assert [row.within_noise for row in sweep.variants] == [None] * 4
    assert "lowest dpo.eval_loss, 0.5; whether others are within noise of it is unknown" in sweep.verdict
    other = sweep_report(SweepFacts("p-1", given.model_copy(update={"figure": "eval_los"}), stages(*losses)))
    assert other.best is None
    assert other.verdict == "No figures: the summary of dpo-1 has no eval_los; it has eval_loss."


def test_before_the_evaluation_there_are_states_and_no_figures() -> None:
    facts = SweepFacts("p-1", planned(), stages(state="running"), waits_for="report is pending")
    sweep = sweep_report(facts)
    assert [row.state for row in sweep.variants] == ["running"] * 4
    assert (sweep.best, sweep.verdict, sweep.notes) == (None, "No figures yet: report is pending.", [])


def test_variants_that_were_dropped_are_shown_with_their_rungs_and_are_not_missing_figures() -> None:
    rungs = [
        PlannedRung(number=1, steps=10, stages=[f"dpo-{n}-rung1" for n in range(1, 5)]),
        PlannedRung(number=2, steps=20, stages=[f"dpo-{n}" for n in range(1, 5)]),
    ]
    halving = PlannedHalving(figure="held_out_accuracy", goal="maximize", factor=2, rungs=rungs)
    facts = {f"dpo-{n}-rung1": StageFacts("succeeded", 1.0, {"held_out_accuracy": 0.5 + n / 10}) for n in (2, 3, 4)}
    facts["dpo-1-rung1"] = StageFacts("failed", 1.0, {})
    facts |= {f"dpo-{n}": StageFacts("skipped", 0.0, {}, f"dropped {n}", dropped=True) for n in (1, 2)}
    facts |= {f"dpo-{n}": StageFacts("succeeded", 2.0, {"held_out_accuracy": 0.7, "pairs": 50}) for n in (3, 4)}
    given = planned(metric="dpo.held_out_accuracy", figure="held_out_accuracy", stage=None, halving=halving)
    for variant in given.variants:
        variant.stages.insert(0, f"dpo-{variant.number}-rung1")
    sweep = sweep_report(SweepFacts("dpo-sweep-1", given, facts))
    assert [(row.state, row.dropped_after, row.reason) for row in sweep.variants] == [
        *(("failed", 1, "dropped 1"), ("skipped", 1, "dropped 2"), ("succeeded", None, None), ("succeeded", None, None))
    ]
    figures = [[rung.figure for rung in row.rungs] for row in sweep.variants]
    assert figures == [[None], [0.7], [pytest.approx(0.8), 0.7], [pytest.approx(0.9), 0.7]]
    assert sweep.best == 3
    assert sweep.verdict.endswith(" 2 of 4 variants were dropped before the last rung.")
    assert [row.dropped_within_noise for row in sweep.variants] == [None] * 4  # of figures without an interval
    for n in (2, 3, 4):
        facts[f"dpo-{n}-rung1"].summary["pairs"] = 500
    sweep = sweep_report(SweepFacts("dpo-sweep-1", given, facts))
    assert [row.dropped_within_noise for row in sweep.variants] == [None, False, None, None]
    facts["dpo-2-rung1"].summary["pairs"] = 8
    sweep = sweep_report(SweepFacts("dpo-sweep-1", given, facts))
    assert [row.dropped_within_noise for row in sweep.variants] == [None, True, None, None]
    assert sweep.verdict.endswith("before the last rung, 1 of them within noise of the best of their rung.")
    assert sweep.halving == ("Successive halving by the highest held_out_accuracy: 4 for 10 steps, 2 for 20 steps.")
