"""The recipes of methods that learn from rewards of their own answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from recipe_plans import refused
from recipe_shelf import Shelf

from steerboard.recipes.planning.plan import make_plan

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
RLOO, GRPO = (RECIPES / f"{name}.yaml" for name in ("rloo", "grpo"))
OF_RLOO, OF_GRPO = ["preferences=hh", "base=tiny"], ["tasks=questions", "model=tiny"]


def stages(recipe: Path, *settings: str):
    return {stage.name: stage for stage in make_plan(recipe.read_text(), list(settings), Shelf()).stages}


def test_the_policy_starts_from_sft_and_is_scored_by_the_reward_model():
    by_name = stages(RLOO, *OF_RLOO)
    assert {slot: source.text for slot, source in by_name["rloo"].inputs.items() if slot != "data"} == {
        "model": "sft",
        "reward": "reward",
    }
    assert (by_name["rloo"].config.answers, by_name["rloo"].config.kl_in) == (4, "reward")


@pytest.mark.parametrize(
    ("recipe", "given", "changes", "method"),
    [
        (
            RLOO,
            OF_RLOO,
            ["rloo.method=reinforce_pp", "rloo.kl_weight=0.01", "rloo.lr=5.0e-7", "rloo.reducer=token"],
            "reinforce_pp",
        ),
        (GRPO, OF_GRPO, ["grpo.scaling=none", "grpo.reducer=constant"], "grpo"),
        *(
            (GRPO, OF_GRPO, [f"grpo.method={method}", "grpo.kl_weight=0"], method)
            for method in ("dapo", "cispo", "gspo", "sapo")
        ),
        (GRPO, OF_GRPO, ["grpo.method=gdpo", "grpo.reducer=token"], "gdpo"),
    ],
)
def test_the_changes_that_the_recipes_describe_are_accepted(recipe, given, changes, method):
    text = " ".join(recipe.read_text().split())
    assert all(f"--set {change}" in text for change in changes)
    by_name = stages(recipe, *given, *changes)
    assert by_name[recipe.stem].config.method == method


@pytest.mark.parametrize(("name", "method"), [("ppo-rules", "ppo"), ("rloo-rules", "rloo")])
def test_rules_alone_reward_and_a_python_file_is_the_line_that_the_recipe_has_as_a_comment(name, method):
    text = (RECIPES / f"{name}.yaml").read_text()
    (stage,) = make_plan(text, OF_GRPO, Shelf()).stages
    assert (stage.config.method, [rule.kind for rule in stage.config.rules]) == (method, ["exact_match", "regex"])
    assert sorted(stage.inputs) == ["data", "model"]
    line = "      # - {kind: python"
    assert line in text
    (stage,) = make_plan(text.replace(line, "      - {kind: python").replace("HASH", "a" * 64), OF_GRPO, Shelf()).stages
    assert stage.config.rules[2].file == "/srv/rewards/tests_pass.py"


def test_openrlhfs_settings_are_those_that_the_recipe_of_ppo_names():
    text = (RECIPES / "ppo.yaml").read_text()
    changes = ["normalise_rewards=true", "reward_clip=10", "gae_lambda=1", "value_clip=0.5"]
    assert all(f"--set ppo.{change}" in text for change in changes)
    config = {
        stage.name: stage
        for stage in make_plan(text, [*OF_RLOO, *(f"ppo.{change}" for change in changes)], Shelf()).stages
    }["ppo"].config
    assert (config.lr, config.critic_lr, config.batch, config.minibatches, config.kl_weight) == (
        5e-7,
        9e-6,
        1024,
        8,
        0.01,
    )
    assert (config.normalise_rewards, config.reward_clip, config.gae_lambda, config.value_clip) == (True, 10, 1, 0.5)


def test_a_second_reward_model_is_a_line_and_must_be_one():
    text = RLOO.read_text().replace("    reward: reward\n", "    reward: reward\n    reward_2: {}\n")
    wrong = text.replace("reward_2: {}", "reward_2: sft")
    assert any("reward_2" in fault and "reward" in fault for fault in refused(Shelf(), wrong, *OF_RLOO))
    own = text.replace("reward_2: {}", "reward_2: reward")
    by_name = {stage.name: stage for stage in make_plan(own, OF_RLOO, Shelf()).stages}
    assert by_name["rloo"].inputs["reward_2"].text == "reward"


@pytest.mark.parametrize(
    ("method", "kept", "fault"),
    [("grpo", 0, "nothing gives the answers a reward"), ("gdpo", 1, "there is one reward")],
)
def test_rewards_that_are_missing_are_a_fault_of_the_stage(method, kept, fault):
    lines = GRPO.read_text().splitlines()
    rules = [number for number, line in enumerate(lines) if line.lstrip().startswith("- {kind: ")]
    kept_lines = [line for number, line in enumerate(lines) if number not in rules[kept:]]
    text = "\n".join(kept_lines)
    text = text if kept else text.replace("    rules:\n", "")
    faults = refused(Shelf(), text, *OF_GRPO, f"grpo.method={method}")
    assert any("grpo" in line and fault in line for line in faults), faults


def test_devices_for_a_role_that_the_stage_does_not_have_are_refused_with_their_place():
    faults = refused(Shelf(), GRPO.read_text(), *OF_GRPO, "grpo.placement.rewards=1")
    assert any("placement" in line and "no model to hold" in line for line in faults), faults


def test_answers_that_leave_no_room_in_the_models_own_window_are_a_fault_of_the_stage():
    shelf = Shelf()
    shelf.models["tiny"] = replace(shelf.models["tiny"], window=1024)
    faults = refused(shelf, GRPO.read_text(), *OF_GRPO)
    assert any("grpo.max_new_tokens" in fault and "the model has 1024 tokens for both" in fault for fault in faults)
    make_plan(GRPO.read_text(), [*OF_GRPO, "grpo.max_new_tokens=512"], shelf)


def test_a_rule_that_cannot_run_is_refused_with_its_place():
    wrong = GRPO.read_text().replace("pattern: 'answer is'", "pattern: '(answer'")
    assert any("regular expression" in fault for fault in refused(Shelf(), wrong, *OF_GRPO))
