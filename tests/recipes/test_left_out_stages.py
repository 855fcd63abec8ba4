"""`--set STAGE=null` leaves a stage out where nothing needs it; a typo is one fault, however often its stage is written
out."""

from __future__ import annotations

import pytest
from recipe_plans import CONTRACT, refused, stage
from recipe_shelf import Shelf
from test_recipe_rounds import INPUTS as ROUND_INPUTS
from test_recipe_rounds import RECIPE as ROUNDS
from test_recipe_sweep import INPUTS, RECIPE

from steerboard.recipes.planning.plan import Plan, make_plan

GIVEN = ("preferences=hh", "base=tiny")


def names(made: Plan) -> set[str]:
    return {planned.name for planned in made.stages}


def test_an_entrant_leaves_with_its_stage_and_a_note_says_so(shelf: Shelf) -> None:
    whole = make_plan(CONTRACT, list(GIVEN), shelf)
    made = make_plan(CONTRACT, [*GIVEN, "rwr=null", "dt=~"], shelf)
    assert names(whole) - names(made) == {"rwr", "dt"}
    report = stage(made, "report")
    assert [entrant.scores for entrant in report.config.entrants] == [[], []]
    assert {slot: report.inputs[slot].text for slot in report.inputs if slot.startswith("entrants")} == {
        "entrants.0": "sft",
        "entrants.1": "mle",
    }
    assert "report is without the entrants of stages that are left out: rwr, dt" in made.notes


def test_what_another_stage_needs_is_kept_and_named(shelf: Shelf) -> None:
    (fault,) = refused(shelf, CONTRACT, *GIVEN, "labelled=null", "mle=null", "rwr=null")
    assert fault == "--set labelled=null: `labelled` cannot be left out: it is needed by stages.dt.data"
    assert "stages.report.rewards.0" in refused(shelf, CONTRACT, *GIVEN, "reward=null")[0]
    every = ("sft=null", "mle=null", "rwr=null", "dt=null")
    assert any("stages.report.entrants.0" in line for line in refused(shelf, CONTRACT, *GIVEN, *every))
    best_of = CONTRACT.replace("[sft, mle", "[{model: sft, best_of: 4, reward: reward}, mle").replace("[reward, ", "[")
    assert "stages.report.entrants.0.reward" in refused(shelf, best_of, *GIVEN, "reward=null")[0]


def test_stages_that_need_each_other_leave_together(shelf: Shelf) -> None:
    made = make_plan(CONTRACT, [*GIVEN, "labelled=null", "mle=null", "rwr=null", "dt=null"], shelf)
    assert {"labelled", "mle"}.isdisjoint(names(made))


def test_an_input_that_only_such_a_stage_reads_needs_no_value(shelf: Shelf) -> None:
    text = CONTRACT.replace("kind: prompts, optional: true", "kind: prompts")
    assert "inputs.prompts (line 6): needs a value" in refused(shelf, text, *GIVEN)[0]
    generated = ("generated=null", "mixture.parts=[{data: $instructions, share: auto}]")
    without_prompts = text.replace("rewards: [reward, independent]", "rewards: [reward], data: $preferences")
    assert "generated" not in names(make_plan(without_prompts, [*GIVEN, *generated], shelf))


def test_entrants_that_are_no_list_are_refused_where_a_stage_is_left_out_too(shelf: Shelf) -> None:
    text = CONTRACT.replace("[sft, mle, rwr, {model: dt, scores: [-5.0, -2.5, 0.0, 2.5, 5.0]}]", "5")
    assert any(
        "stages.report.entrants (line 16): should be a valid list" in line
        for line in refused(shelf, text, *GIVEN, "dt=null")
    )


def test_a_sweep_keeps_what_it_varies(shelf: Shelf) -> None:
    (fault,) = refused(shelf, RECIPE, *INPUTS, "mle=null")
    assert "sweep.vary.mle.threshold" in fault
    assert "dt-1" not in names(make_plan(RECIPE, [*INPUTS, "dt=null"], shelf))
    assert "mle" not in names(make_plan(RECIPE, [*INPUTS, "sweep=null", "mle=null"], shelf))


def test_a_round_keeps_the_policy_that_it_hands_on(shelf: Shelf) -> None:
    for left_out in ("tuned=null", "tuned-3=null"):
        assert any("the rounds" in line for line in refused(shelf, ROUNDS, *ROUND_INPUTS, left_out))


@pytest.mark.parametrize(
    ("override", "fault"),
    [
        ("mle.treshold=1", "unknown key `treshold`; did you mean `threshold`?"),
        ("mle.threshold=high", "should be a valid number, got 'high'"),
        ("mle.lora.rnk=4", "unknown key `rnk`; did you mean `rank`?"),
        ("sweep.vary.mle.treshold=[0, 1]", "has no field `treshold`; did you mean `threshold`?"),
        ("sweep.vary.mle.lr=[1.0e-6, fast]", "should be a valid number, got 'fast'"),
        ("sweep.metric=reprt", "unknown stage `reprt`; did you mean `report`?"),
        ("sweeep.metric=report", "no input or stage `sweeep`; did you mean `sweep`?"),
    ],
)
def test_one_typo_in_a_sweep_is_one_fault(shelf: Shelf, override: str, fault: str) -> None:
    (message,) = refused(
        shelf, RECIPE.replace("    mle.threshold: [0.0, 0.5]\n", "    mle.lr: [1e-6, 2e-6]\n"), *INPUTS, override
    )
    assert fault in message
    assert f"--set {override}" in message


def test_one_typo_in_a_round_is_one_fault(shelf: Shelf) -> None:
    (message,) = refused(shelf, ROUNDS, *ROUND_INPUTS, "tuned.lrr=1")
    assert "unknown key `lrr`; did you mean `lr`?" in message
    (message,) = refused(shelf, ROUNDS.replace("lr: 1.0e-6", "lrr: 1.0e-6"), *ROUND_INPUTS)
    assert "unknown key `lrr`" in message
