"""Runs of an evaluation that belong to a recipe's stage: children of its run, in its pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from steerboard.datasets.tables import Dataset
from steerboard.runs.tables import Run
from steerboard_contracts.configs import EvaluateConfig


@dataclass(frozen=True)
class RecipeStage:
    """The evaluate run that an evaluation is made for. `labelled` and `preferences`: what the recipe gives its reward
    models for z units and for their accuracy."""

    run: Run
    config: EvaluateConfig
    labelled: Dataset | None
    preferences: Dataset | None


def child_of(stage: RecipeStage | None, part: str) -> dict[str, Any]:
    """What `create_run` takes for the run of one part: an entrant, a reward model."""
    if stage is None:
        return {}
    return {"name": f"{stage.run.name}.{part}"[:128], "parent": stage.run, "priority": stage.run.priority}
