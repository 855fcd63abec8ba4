"""The recipe of on-policy distillation."""

from __future__ import annotations

from pathlib import Path

import pytest
from recipe_plans import refused
from recipe_shelf import Shelf

from steerboard.recipes.planning.plan import make_plan

RECIPE = (Path(__file__).resolve().parents[2] / "recipes" / "distil.yaml").read_text()
GIVEN = ["teacher=tiny", "student=tiny", "prompts=questions"]


def stages(text: str = RECIPE, *settings: str):
    return {stage.name: stage for stage in make_plan(text, [*GIVEN, *settings], Shelf()).stages}


def test_the_student_learns_the_teachers_answers_and_then_on_its_own():
    by_name = stages()
    assert list(by_name) == ["written", "taught", "distil"]
    assert by_name["taught"].inputs["data"].text == "written"
    assert by_name["distil"].inputs["model"].text == "taught"
    assert set(by_name["distil"].inputs) == {"model", "teacher", "data"}
    assert by_name["distil"].config.whole_vocabulary


@pytest.mark.parametrize(
    "changes",
    [
        ["distil.divergence=jsd", "distil.beta=0.1"],
        ["distil.divergence=forward_kl"],
        ["distil.divergence=sampled_reverse_kl"],
        ["distil=null"],
    ],
)
def test_the_changes_that_the_recipe_describes_are_accepted(changes):
    described = " ".join(RECIPE.replace("\n#", "").split())
    assert all(f"--set {change}" in described for change in changes)
    assert ("distil" in stages(RECIPE, *changes)) == (changes != ["distil=null"])


@pytest.mark.parametrize("share", ["0.5", "0"])
def test_the_teachers_answers_can_be_learned_in_the_same_steps(share):
    text = RECIPE.replace("    on_policy: 1.0\n", f"    on_policy: {share}\n")
    fault = "prompts have no single one to a prompt"
    assert any("distil" in line and fault in line for line in refused(Shelf(), text, *GIVEN))
    at = text.rindex("data: $prompts")
    assert stages(text[:at] + "data: written" + text[at + len("data: $prompts") :])["distil"].config.on_policy < 1


def test_a_reward_is_a_few_lines():
    rule = "    rules: [{kind: regex, pattern: yes}]\n    answers: 4\n    alpha: 0.5\n"
    assert stages(RECIPE.replace("    on_policy: 1.0\n", f"    on_policy: 1.0\n{rule}"))["distil"].config.alpha == 0.5
    without = RECIPE.replace("    on_policy: 1.0\n", "    on_policy: 1.0\n    answers: 4\n    alpha: 0.5\n")
    assert any("nothing gives the answers a reward" in line for line in refused(Shelf(), without, *GIVEN))
