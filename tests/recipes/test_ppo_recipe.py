"""The recipe of PPO."""

from __future__ import annotations

from pathlib import Path

from recipe_plans import refused, stage
from recipe_shelf import Shelf

from steerboard.recipes.planning.plan import make_plan

RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "ppo.yaml"
SETTINGS = ["preferences=hh", "base=tiny"]


def test_the_policy_learns_from_the_reward_model_and_nothing_else_has_to_be_named() -> None:
    made = make_plan(RECIPE.read_text(), SETTINGS, Shelf())
    ppo = stage(made, "ppo")
    assert {slot: source.text for slot, source in ppo.inputs.items() if slot != "data"} == {
        "model": "sft",
        "reward": "reward",
    }
    config = ppo.config
    assert (config.lr, config.critic_lr, config.batch / config.minibatches) == (5e-7, 9e-6, 128)


def test_a_critic_of_a_run_is_one_line_and_must_be_a_model_with_a_number() -> None:
    own = RECIPE.read_text().replace("    reward: reward\n", "    reward: reward\n    critic: reward\n")
    assert stage(make_plan(own, SETTINGS, Shelf()), "ppo").inputs["critic"].text == "reward"
    wrong = own.replace("reward: reward\n", "reward: sft\n")
    assert any("reward" in fault for fault in refused(Shelf(), wrong, *SETTINGS))


def test_texts_to_learn_besides_are_the_two_lines_that_the_recipe_has_as_comments() -> None:
    text = RECIPE.read_text()
    given, coefficient = "    # pretraining: $instructions", "    # ptx_coefficient: 27.8"
    assert given in text
    assert coefficient in text
    one, other = (text.replace(line, line.replace("# ", "")) for line in (given, coefficient))
    assert any("has no effect with ptx_coefficient 0" in fault for fault in refused(Shelf(), one, *SETTINGS))
    assert any("ptx_coefficient needs a dataset" in fault for fault in refused(Shelf(), other, *SETTINGS))
    both = one.replace(coefficient, coefficient.replace("# ", ""))
    ppo = stage(make_plan(both, SETTINGS, Shelf()), "ppo")
    # What the instructions are where none are given: the chosen sides of the preferences.
    assert (ppo.inputs["pretraining"].text, ppo.config.ptx_coefficient) == ("instructions", 27.8)
    own = stage(make_plan(both, [*SETTINGS, "instructions=graded"], Shelf()), "ppo")
    assert own.inputs["pretraining"].name == "graded"


def test_the_critic_of_a_run_can_be_learned_further() -> None:
    longer = RECIPE.read_text().replace(
        "  # `independent`",
        "  more: {run: train, method: ppo, model: ppo, critic: ppo.critic, reward: reward, data: $prompts}\n"
        "  # `independent`",
    )
    assert stage(make_plan(longer, SETTINGS, Shelf()), "more").inputs["critic"].text == "ppo.critic"
