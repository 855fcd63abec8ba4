"""The recipe of all methods that learn from preference pairs."""

from __future__ import annotations

from pathlib import Path

from recipe_plans import refused
from recipe_shelf import Shelf

from steerboard.recipes.planning.plan import make_plan
from steerboard_contracts.methods import methods

RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "preferences.yaml"
SETTINGS = ["preferences=hh", "base=tiny"]


def test_the_recipe_plans_every_method_of_pairs_from_one_sft_model() -> None:
    plan = make_plan(RECIPE.read_text(), SETTINGS, Shelf())
    trained = {stage.config.method: stage for stage in plan.stages if stage.config.run == "train"}
    of_pairs = {spec.name for spec in methods().values() if spec.data == ("preferences",) and spec.role == "policy"}
    assert of_pairs <= set(trained)
    assert all(trained[name].inputs["model"].text == "sft" for name in of_pairs)


def test_a_reference_is_one_line_and_must_be_a_policy() -> None:
    text = RECIPE.read_text()
    own = text.replace("method: ipo, model: sft", "method: ipo, model: sft, reference: dpo")
    plan = make_plan(own, SETTINGS, Shelf())
    assert next(s for s in plan.stages if s.name == "ipo").inputs["reference"].text == "dpo"
    wrong = own.replace("reference: dpo", "reference: reward")
    assert any("reference" in fault for fault in refused(Shelf(), wrong, *SETTINGS))


def test_a_field_of_another_method_is_named() -> None:
    wrong = RECIPE.read_text().replace("tau: 0.1", "beta: 0.1")
    assert any("beta" in fault for fault in refused(Shelf(), wrong, *SETTINGS))


def test_pairs_are_not_learned_from_other_data() -> None:
    pairs = "method: dpo, model: sft, data: "
    wrong = RECIPE.read_text().replace(f"{pairs}$preferences", f"{pairs}$prompts")
    assert any("preferences" in fault for fault in refused(Shelf(), wrong, *SETTINGS, "prompts=questions"))


def test_overrides_reach_the_fields_of_any_stage() -> None:
    changes = [
        "dpo.lr=1e-6",
        "simpo.batch=16",
        "kto.reduction=mean",
        "kto.beta=2",
        "report.prompts=20",
        "reward.epochs=2",
    ]
    plan = make_plan(RECIPE.read_text(), [*SETTINGS, *changes], Shelf())
    stages = {stage.name: stage.config for stage in plan.stages}
    assert (stages["dpo"].lr, stages["simpo"].batch, stages["kto"].reduction) == (1e-6, 16, "mean")
    assert (stages["report"].prompts, stages["reward"].epochs) == (20, 2)
    assert stages["ipo"].lr == 5e-7


def test_a_limit_of_tokens_leaves_sampled_answers_sampled() -> None:
    plan = make_plan(RECIPE.read_text(), [*SETTINGS, "report.decoding.max_new_tokens=12"], Shelf())
    decoding = next(stage.config.decoding for stage in plan.stages if stage.name == "report")
    assert (decoding.temperature, decoding.max_new_tokens) == (1.0, 12)


def test_the_report_has_the_frontier_with_best_of_8_of_the_model_that_all_start_from() -> None:
    plan = make_plan(RECIPE.read_text(), SETTINGS, Shelf())
    report = next(stage for stage in plan.stages if stage.name == "report")
    assert report.inputs["kl_to"].text == "sft"
    best, sampled = report.config.entrants[-2:]
    assert (best.best_of, sampled.samples, report.config.decoding.temperature) == (8, 8, 1.0)
    for back in (1, 2):
        assert report.inputs[f"entrants.{len(report.config.entrants) - back}"].text == "sft"
