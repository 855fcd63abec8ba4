"""Responses of a dataset that get rewards, by a reward model or by a program."""

from __future__ import annotations

import math
from typing import Any

from steerboard_contracts.errors import BadInput
from steerboard_workers.stages.models.scoring import Scorable
from steerboard_workers.stages.runtime import Stage


def scorable(stage: Stage, row: dict[str, Any]) -> Scorable:
    """Raises `BadInput` (`wrong_dataset_kind`) for a row without a response."""
    if not isinstance(row.get("response"), str | dict):
        dataset = stage.dataset("data")
        raise BadInput(
            f"dataset {dataset.name} is of kind {dataset.kind} and has no responses to score",
            code="wrong_dataset_kind",
            hint="Score instructions, labelled data, or a mixture; a mixture takes the sides of preferences apart.",
        )
    return Scorable(row["prompt"], row["response"])


def summarised(values: list[float]) -> dict[str, float]:
    """Mean, sd, lowest and highest of rewards, for a run's summary."""
    if not values:
        return {}
    mean = math.fsum(values) / len(values)
    sd = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values))
    return {"reward_mean": mean, "reward_sd": sd, "reward_min": min(values), "reward_max": max(values)}
