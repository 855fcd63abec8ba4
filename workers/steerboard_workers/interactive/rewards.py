"""Scoring single answers by a reward model, in raw units and in a policy's own."""

from __future__ import annotations

import math
from collections.abc import Sequence

from steerboard_contracts.errors import BadInput
from steerboard_contracts.prompts import Normaliser
from steerboard_workers.alignment.rendering.templates import Prompt
from steerboard_workers.interactive.hosts import Wanted
from steerboard_workers.interactive.models import HeldModel


def rewards_of(reward_model: HeldModel, samples: Sequence[tuple[Prompt, str]], wanted: Wanted) -> list[float]:
    """One raw reward for each (prompt, answer). Raises `BadInput` (`non_finite_reward`), and as `ModelHost.score`."""
    values = reward_model.host.score(samples, wanted)
    if not all(math.isfinite(value) for value in values):
        raise BadInput(
            f"{reward_model.name} gives a reward that is not a finite number",
            code="non_finite_reward",
            hint="Train the reward model again, or with `precision: fp32`.",
        )
    return values


def own_units(normaliser: Normaliser | None, reward_model: HeldModel) -> Normaliser | None:
    """What brought this very model's rewards to z units where a policy learned from them, if it did."""
    return normaliser.of_model(reward_model.hash) if normaliser is not None else None
