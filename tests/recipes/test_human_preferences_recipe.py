"""The recipe for human preferences of several sources."""

from __future__ import annotations

import uuid
from pathlib import Path

from recipe_plans import stage
from recipe_shelf import Shelf

from steerboard.recipes.planning.plan import make_plan
from steerboard.runs.launch.lookup import KnownDataset

RECIPE = Path(__file__).resolve().parents[2] / "recipes" / "human-preferences.yaml"
FILES = ("judgments", "held_out", "hh", "pandalm", "llmbar", "oasst", "grades")


def test_held_out_pairs_are_only_benchmarked_and_no_stage_learns_from_the_judge() -> None:
    shelf = Shelf()
    known = {name: KnownDataset(uuid.uuid4(), f"a-{name}", "preferences", 500) for name in FILES}
    shelf.datasets |= {dataset.name: dataset for dataset in known.values()}
    made = make_plan(RECIPE.read_text(), ["pairs=hh", "base=tiny", *(f"{name}=a-{name}" for name in FILES)], shelf)
    reads = {name: {stage.name for stage in made.stages if known[name] in stage.inputs.values()} for name in FILES}
    assert {stage(made, name).config.run for name in reads["held_out"]} == {"benchmark"}
    assert reads["judgments"] == {"judge"}
    for source in ("hh", "pandalm", "llmbar", "oasst", "grades"):
        assert reads[source] == {f"from_{source}"}
    assert {planned.name for planned in made.stages if "judge" in planned.needs} == {"accuracy_of_judge", "report"}
