"""Scoring single answers by a reward model, in raw units and in a policy's own."""

from __future__ import annotations

import math
from collections.abc import Sequence

from steerboard_contracts.errors import BadInput
from steerboard_contracts.prompts import Normaliser
from steerboard_workers.alignment.templates import Prompt
from steerboard_workers.interactive.models import HeldModel
from steerboard_workers.stages.scoring import Scorable, reward_engine, score_texts

_BATCH_TOKENS = 8192


def rewards_of(reward_model: HeldModel, samples: Sequence[tuple[Prompt, str]]) -> list[float]:
    """One raw reward for each (prompt, answer). Raises `BadRow`, and `BadInput` (`non_finite_reward`)."""
    values = score_texts(reward_engine(reward_model.loaded), [Scorable(*sample) for sample in samples], _BATCH_TOKENS)
    if not all(math.isfinite(value) for value in values):
        raise BadInput(
            f"{reward_model.name} gives a reward that is no finite number",
            code="non_finite_reward",
            hint="Train the reward model again, or with `precision: fp32`.",
        )
    return values


def own_units(normaliser: Normaliser | None, reward_model: HeldModel) -> Normaliser | None:
    """A policy's normaliser, if it is about the rewards of this very model."""
    return normaliser if normaliser is not None and normaliser.reward_model_hash == reward_model.hash else None
