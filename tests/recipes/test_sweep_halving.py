"""Successive halving of a sweep, written out as rungs that wait for each other."""

from __future__ import annotations

import uuid

import pytest
from recipe_plans import refused, stage
from recipe_shelf import Shelf

from steerboard.evaluation.sweeps.halving import halving_in_words
from steerboard.recipes.inputs import StageRef
from steerboard.recipes.planning.plan import Plan, make_plan
from steerboard.runs.launch.lookup import KnownDataset

RECIPE = """\
name: halved
inputs:
  policy: {type: model}
  judge: {type: model}
  graded: {type: dataset, kind: labelled}
  questions: {type: dataset, kind: prompts}
sweep:
  vary:
    dt.lr: [1.0e-6, 2.0e-6, 3.0e-6, 4.0e-6, 5.0e-6]
  metric: report
  halving: {figure: dt.eval_loss, goal: minimize, rungs: [10, 20, 40]}
stages:
  dt: {run: train, method: decision_transformer, model: $policy, data: $graded, epochs: 9}
  mle: {run: train, method: mle_filter, model: $policy, data: $graded}
  more: {run: train, method: rwr, model: dt, data: $graded}
  report: {run: evaluate, entrants: [dt, $policy], rewards: [$judge], data: $questions}
"""
INPUTS = ("policy=tuned", "judge=judge", "questions=questions", "graded=grades")


@pytest.fixture(autouse=True)
def _graded(shelf: Shelf) -> None:
    shelf.datasets["grades"] = KnownDataset(uuid.uuid4(), "grades", "labelled", 4000)


def plan(shelf: Shelf, *overrides: str, text: str = RECIPE) -> Plan:
    return make_plan(text, [*INPUTS, *overrides], shelf)


def test_each_rung_trains_every_variant_for_its_steps_and_waits_for_all_of_the_rung_before(shelf: Shelf) -> None:
    made = plan(shelf)
    assert made.sweep is not None
    assert made.sweep.halving is not None
    first, second, last = made.sweep.halving.rungs
    assert (first.stages[1], second.stages[1], last.stages[1]) == ("dt-2-rung1", "dt-2-rung2", "dt-2")
    assert [made.sweep.halving.kept(rung) for rung in (0, 1, 2)] == [5, 2, 1]
    for rung in (first, second, last):
        configs = [stage(made, name).config for name in rung.stages]
        assert {config.max_steps for config in configs} == {rung.steps}
        assert [config.lr for config in configs] == [1e-6, 2e-6, 3e-6, 4e-6, 5e-6]
        assert {config.epochs for config in configs} == {9}
    assert not [slot for slot in stage(made, "dt-2-rung1").inputs if slot.startswith("after")]
    for former, rung in ((first, second), (second, last)):
        for name in rung.stages:
            waits = {source for slot, source in stage(made, name).inputs.items() if slot.startswith("after.any.")}
            assert waits == {StageRef(name) for name in former.stages}


def test_other_stages_read_the_last_rung(shelf: Shelf) -> None:
    made = plan(shelf)
    entrants = [source for slot, source in stage(made, "report").inputs.items() if slot.startswith("entrants")]
    assert entrants[:5] == [StageRef(f"dt-{n}") for n in range(1, 6)]
    assert stage(made, "more-3").inputs["model"] == StageRef("dt-3")
    assert stage(made, "mle").config.max_steps is None
    assert made.sweep is not None
    assert made.sweep.variants[2].stages == ["dt-3-rung1", "dt-3-rung2", "dt-3", "more-3"]
    assert "5 for 10, 2 for 20, 1 for 40, the best by eval_loss continuing" in made.notes[-1]


# There is one `dt` on the shared policy, whatever `mle` does.
SHARED = ("sweep.vary={dt.model: [mle, $policy], mle.lr: [1.0e-6, 2.0e-6, 3.0e-6, 4.0e-6]}",)


def test_variants_that_share_the_halved_training_count_once(shelf: Shelf) -> None:
    made = plan(shelf, *SHARED)
    assert made.sweep is not None
    halving = made.sweep.halving
    assert halving is not None
    assert len(made.sweep.variants) == len(halving.rungs[0].stages) == 8
    assert len(set(halving.rungs[0].stages)) == 5
    assert [halving.kept(rung) for rung in (0, 1, 2)] == [5, 2, 1]
    assert "5 for 10, 2 for 20, 1 for 40, the best by eval_loss continuing; variants that share" in made.notes[-1]
    assert halving_in_words(halving) == (
        "Successive halving by the lowest eval_loss: 5 for 10 steps, 2 for 20 steps, 1 for 40 steps, where variants "
        "that share the training count once."
    )
    faults = refused(shelf, RECIPE, *INPUTS, *SHARED, "sweep.halving.rungs=[5, 10, 20, 40]")
    assert any("after 2 of them 1 of 5 different `dt` in 8 variants is left" in line for line in faults), faults


def test_the_figure_of_the_sweep_decides_where_training_measures_it(shelf: Shelf) -> None:
    changed = ("sweep.metric=dt.held_out_accuracy", "sweep.goal=maximize", "sweep.halving={rungs: [5, 9], factor: 3}")
    made = plan(shelf, *changed).sweep
    assert made is not None
    assert made.halving is not None
    assert (made.halving.figure, made.halving.goal, made.halving.factor) == ("held_out_accuracy", "maximize", 3)
    assert plan(shelf, "sweep.halving.factor=4", "sweep.halving.rungs=[3, 4]").sweep.halving.factor == 4
    without = plan(shelf, "sweep.halving=null")
    assert [planned.name for planned in without.stages if "rung" in planned.name] == []


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("sweep.halving.factor=6", "is 6, and there are 5 variants: none would be left"),
        ("sweep.halving.rungs=[5, 10, 20, 40]", "after 2 of them 1 of 5 variants is left: give at most 3 rungs"),
        ("sweep.halving.rungs=[20, 10]", "each rung needs more steps than the one before, got [20, 10]"),
        ("sweep.halving.rungs=[20]", "at least 2"),
        ("sweep.halving.figure=dt.loss", "`loss` is none of the held-out figures of `dt`"),
        ("sweep.halving.figure=td.eval_loss", "unknown stage `td`; known: dt, mle, more, report"),
        ("sweep.halving.figure=report", "`report` is an evaluation, which is there after the last rung"),
        ("sweep.halving.figure=mle.eval_loss", "changes nothing of `mle`"),
        ("sweep.halving.figure=more.eval_loss", "`dt`, whose figure decides in the end, does not need `more`"),
        ("sweep.halving.figure=null", "needs `figure`: a held-out figure of the training stage"),
        ("sweep.halving={rungs: [5, 10]}", "needs `figure`"),
        ("sweep.halving.goal=null", "needs `goal`: whether to maximize or minimize eval_loss"),
        ("sweep.vary.dt.max_steps=[1, 2]", "the rungs of the halving set the steps of `dt`"),
        ("dt.max_steps=80", "`dt` has max_steps 80, and its last rung 40: leave max_steps out of it"),
        ("sweep.halving.keep=2", "unknown key `keep`"),
    ],
)
def test_a_rule_that_cannot_be_followed_is_refused(shelf: Shelf, override: str, message: str) -> None:
    faults = refused(shelf, RECIPE, *INPUTS, override)
    assert any(message in line for line in faults), faults


def test_rounds_take_no_halving_either(shelf: Shelf) -> None:
    rounds = (
        "rounds: 2\nround: {previous: dt, stages: {more: {run: train, method: sft, model: previous, data: $graded}}}\n"
    )
    faults = refused(shelf, RECIPE + rounds, *INPUTS)
    assert any("a recipe with rounds takes no sweep" in line for line in faults)


def test_a_stage_of_a_rung_is_changed_for_all_variants(shelf: Shelf) -> None:
    faults = refused(shelf, RECIPE, *INPUTS, "dt-2-rung1.lr=1e-5")
    assert any("`dt-2-rung1` is a stage of variant 2 of the sweep: set `dt`" in line for line in faults)
