"""The recipe for human preferences of several sources."""

from __future__ import annotations

import uuid
from pathlib import Path

from recipe_plans import stage
from recipe_shelf import Shelf

from steerboard.recipes.planning.plan import make_plan
from steerboard.runs.launch.lookup import KnownDataset

RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "human-preferences.yaml"
FILES = ("judgments", "held_out", "one", "other")


def test_held_out_pairs_are_only_benchmarked_and_no_stage_learns_from_the_judge() -> None:
    shelf = Shelf()
    known = {one: KnownDataset(uuid.uuid4(), one, "preferences", 500) for one in FILES}
    shelf.datasets |= known
    made = make_plan(RECIPE.read_text(), ["pairs=hh", "base=tiny", *(f"{one}={one}" for one in FILES)], shelf)
    reads = {one: {stage.name for stage in made.stages if known[one] in stage.inputs.values()} for one in FILES}
    assert {stage(made, name).config.run for name in reads["held_out"]} == {"benchmark"}
    assert reads["judgments"] == {"judge"}
    assert {one.name for one in made.stages if "judge" in one.needs} == {"accuracy_of_judge", "report"}
