"""Who may end the rounds of a recipe: a reward model, a preference model of the recipe or the registry, or an LLM."""

from __future__ import annotations

import uuid

import pytest
from recipe_plans import refused, stage
from recipe_shelf import Shelf
from test_recipe_rounds import INPUTS, PAIRS, STOP, inputs, plan

from steerboard.runs.launch.lookup import KnownModel

LLM = STOP.replace("judge: independent", "judge: {endpoint: gpt, criteria: honesty}")
TRAINED = STOP.replace("judge: independent", "judge: comparer").replace(
    "  sft: {", "  comparer: {run: train, method: preference_model, model: $policy, data: $pairs}\n  sft: {"
)
GIVEN = STOP.replace("judge: independent", "judge: $comparer").replace(
    "  questions:", "  comparer: {type: model}\n  questions:"
)


@pytest.fixture
def shelf(shelf: Shelf) -> Shelf:
    shelf.models["comparer"] = KnownModel(uuid.uuid4(), "comparer", "preference")
    return shelf


def test_an_endpoint_compares_the_policies_of_a_round_without_any_reward_model(shelf: Shelf) -> None:
    made = plan(shelf, PAIRS, text=LLM)
    assert inputs(made, "check-2") == {
        "entrants.0": "sft", "entrants.1": "tuned-1", "entrants.2": "tuned-2", "data": "questions", "after.0": "check-1"
    }  # fmt: skip
    config = stage(made, "check-2").config
    assert (config.judge.endpoint, config.judge.style, config.judge.criteria) == ("gpt", "pairwise", "honesty")
    assert made.rounds is not None
    assert made.rounds.judge == "gpt"
    assert inputs(made, "last")["after.0"] == "check-3"


def test_an_override_lets_an_llm_decide_instead(shelf: Shelf) -> None:
    made = plan(shelf, PAIRS, "rounds.stop.judge={endpoint: gpt, style: single}", text=STOP)
    assert stage(made, "check-1").config.judge.style == "single"
    assert "rewards.0" not in inputs(made, "check-1")


@pytest.mark.parametrize(("text", "more"), [(TRAINED, []), (GIVEN, ["comparer=comparer"])])
def test_a_preference_model_is_the_judge_of_the_checks_and_gives_no_rewards(
    shelf: Shelf, text: str, more: list[str]
) -> None:
    made = plan(shelf, PAIRS, *more, text=text)
    for number in (1, 2, 3):
        given = inputs(made, f"check-{number}")
        assert given["judge"] == "comparer"
        assert "rewards.0" not in given


def test_an_evaluation_has_a_judge_beside_its_reward_models(shelf: Shelf) -> None:
    text = LLM.replace("independent]}", "independent], judge: {endpoint: gpt, style: single}}")
    made = plan(shelf, PAIRS, text=text)
    report = stage(made, "report")
    assert (report.config.judge.style, report.config.decides) == ("single", False)
    assert inputs(made, "report")["rewards.1"] == "independent"
    compared = plan(shelf, PAIRS, text=TRAINED.replace("independent]}", "independent], judge: comparer}"))
    assert inputs(compared, "report")["judge"] == "comparer"


@pytest.mark.parametrize(
    ("text", "change", "fault"),
    [
        (LLM, ("gpt", "gtp"), "stages.check-1.judge.endpoint (line 7): there is no endpoint `gtp` in the project; did"),
        (LLM, ("criteria", "citeria"), "stages.check-1.judge.citeria (line 7): unknown key"),
        (LLM, ("endpoint: gpt", "model: gpt"), "rounds.stop (line 7): needs `judge`: a model that no stage learns"),
        (
            LLM,
            ("rewards: [teacher, independent]", "judge: {endpoint: gpt}"),
            "stages.report (line 22): needs `rewards`",
        ),
        (
            TRAINED,
            ("best: {run: select, data: [scored]", "best: {run: select, data: [scored], judge: comparer"),
            "rounds.stop.judge (line 7): `comparer` is read by `best-1`, so that the rounds may learn from it",
        ),
        (STOP, ("judge: independent", "judge: sft"), "stages.check-1.rewards.0 (line 7): needs a model of role reward"),
    ],
)
def test_a_judge_that_cannot_be_is_refused_with_its_line(
    shelf: Shelf, text: str, change: tuple[str, str], fault: str
) -> None:
    faults = refused(shelf, text.replace(*change), *INPUTS, PAIRS)
    assert any(line.startswith(fault) for line in faults), faults
