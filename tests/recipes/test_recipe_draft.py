"""What a form shows of a recipe while it is being typed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recipe_plans import CONTRACT
from recipe_shelf import Shelf

from steerboard.recipes.errors import InvalidRecipe
from steerboard.recipes.planning.plan import read_recipe
from steerboard.recipes.schemas import DraftOut, RecipeOut
from steerboard.runs.launch.lookup import Catalogue


def test_a_form_knows_which_models_every_stage_takes() -> None:
    text = CONTRACT.replace("rewards: [reward, independent]", "rewards: [$judge]").replace(
        "  base: {type: model}", "  judge: {type: model}\n  unread: {type: model}\n  base: {type: model}"
    )
    roles = {input_.name: input_.roles for input_ in RecipeOut.of(text).inputs if input_.type == "model"}
    assert roles == {"base": ["base", "policy", "sft"], "judge": ["reward"], "unread": []}


def test_a_model_that_does_not_fit_is_said_at_the_input_that_names_it(shelf: Shelf) -> None:
    draft = DraftOut.of(read_recipe(CONTRACT, ["preferences=hh", "base=judge"], shelf), lambda *_: [])
    assert [(fault.field, "of role reward" in fault.message) for fault in draft.faults] == [("inputs.base", True)]


def draft(shelf: Catalogue, text: str, *overrides: str) -> DraftOut:
    return DraftOut.of(read_recipe(text, ["preferences=hh", "base=tiny", *overrides], shelf), lambda *_: [])


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("sft.lr=fast", "should be a valid number, got 'fast'"),
        ("sft.lr=1e", "should be a valid number, got '1e'"),
        ("sft.lr=[1", "the value is not valid YAML"),
        ("sft.lr=-1", "should be greater than 0"),
        ("sft.lr=.inf", "is not a finite number"),
        ("sft.seed=1.5", "should be a valid integer"),
        ("instructions.size=many", "should be a valid integer"),
    ],
)
def test_a_draft_keeps_every_stage_and_names_the_field_that_is_wrong(
    shelf: Catalogue, override: str, message: str
) -> None:
    whole = draft(shelf, CONTRACT)
    assert whole.faults == []
    drafted = draft(shelf, CONTRACT, override)
    assert [stage.name for stage in drafted.stages] == [stage.name for stage in whole.stages]
    (fault,) = drafted.faults
    assert fault.field == "stages." + override.partition("=")[0]
    assert fault.message.startswith(message)
    at_fault = override.partition(".")[0]
    assert [stage for stage in drafted.stages if stage.name != at_fault] == [
        stage for stage in whole.stages if stage.name != at_fault
    ]
    broken = next(stage for stage in drafted.stages if stage.name == at_fault)
    assert broken.config.keys() == next(stage for stage in whole.stages if stage.name == at_fault).config.keys()
    json.loads(drafted.model_dump_json())
    assert draft(shelf, CONTRACT, override.partition("=")[0] + "=1").faults == []


def test_a_draft_shows_the_stages_beside_an_input_or_a_line_that_is_wrong(shelf: Catalogue) -> None:
    drafted = draft(shelf, CONTRACT.replace("lr: 9.0e-6", "lr: slow"), "base=tyny")
    assert {fault.field for fault in drafted.faults} == {"inputs.base", "stages.reward.lr"}
    assert {"sft", "reward", "report"} <= {stage.name for stage in drafted.stages}
    assert next(stage.config["lr"] for stage in drafted.stages if stage.name == "reward") == "slow"
    assert {fault.field for fault in draft(shelf, CONTRACT, "sfft.lr=1", "judge=hh", "sft=1").faults} == {
        "stages.sfft.lr",
        "inputs.judge",
        "inputs.sft",
    }
    with pytest.raises(InvalidRecipe):
        read_recipe("name: x", [], shelf)


def test_a_fault_names_the_line_and_the_column_of_its_key(shelf: Catalogue) -> None:
    text = CONTRACT.replace("lr: 9.0e-6", "lr: slow")
    slow, typed = draft(shelf, text, "sft.lr=fast").faults
    lines = text.splitlines()
    at = next(number for number, line in enumerate(lines) if "lr: slow" in line)
    assert (slow.line, slow.column) == (at + 1, lines[at].index("lr: slow") + 1)
    # An override is no part of the text.
    assert (typed.field, typed.line, typed.column) == ("stages.sft.lr", None, None)


@given(typed=st.text(max_size=20))
def test_whatever_is_typed_into_a_field_its_stages_stay(typed: str) -> None:
    drafted = draft(Shelf(), CONTRACT, f"sft.lr={typed}")
    assert {"sft", "reward", "mle", "report"} <= {stage.name for stage in drafted.stages}
    assert {fault.field for fault in drafted.faults} <= {"stages.sft.lr"}
    json.loads(drafted.model_dump_json())
