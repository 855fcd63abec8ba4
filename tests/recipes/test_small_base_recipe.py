"""The recipe for a small pretrained base."""

from __future__ import annotations

import uuid
from pathlib import Path

from recipe_plans import stage
from recipe_shelf import Shelf

from steerboard.recipes.planning.plan import make_plan
from steerboard.runs.launch.lookup import KnownDataset

RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "small-base.yaml"


def test_the_judge_learns_from_pairs_of_its_own_and_no_stage_from_the_judge() -> None:
    shelf = Shelf()
    others = shelf.datasets["others"] = KnownDataset(uuid.uuid4(), "others", "preferences", 500)
    made = make_plan(RECIPE.read_text(), ["preferences=hh", "judgments=others", "base=tiny"], shelf)
    # `prompts` are texts to answer.
    assert {planned.name for planned in made.stages if others in planned.inputs.values()} == {"judge", "prompts"}
    assert [planned.name for planned in made.stages if "judge" in planned.needs] == ["report"]
    assert stage(made, "report").inputs["rewards.1"].text == "judge"
    assert all(stage(made, name).config.lora is not None for name in ("dt", "dpo", "kto"))
