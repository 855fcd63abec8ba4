"""The config that conditional methods add to what all methods share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from steerboard_contracts.samples import Finite
from steerboard_contracts.training import TrainingConfig
from steerboard_contracts.watching.health import CONDITION_RULES, HealthRules

CONDITION_GAIN_ROWS = 128
# The figure of a run by which it is decided whether the condition is used.
CONDITION_GAIN = "eval_condition_gain_shuffled"


class ConditionalConfig(TrainingConfig):
    """The config of methods whose policies are asked for a condition, such as a score."""

    condition_gain_rows: Annotated[
        int,
        Field(
            ge=0,
            le=10_000,
            description="At every evaluation, how many nats an answer gains by its own condition is measured on at "
            "most this many held-out rows, drawn once; 0 turns it off.",
        ),
    ] = CONDITION_GAIN_ROWS
    drop_score: Annotated[
        Finite,
        Field(
            ge=0,
            lt=1,
            description="Share of the training rows that are learned without their score, so that guidance has answers "
            "without one to start from; drawn by the seed. Held-out rows keep theirs.",
            json_schema_extra={"source": "arXiv 2207.12598, Algorithm 1"},
        ),
    ] = 0.0
    health: HealthRules = Field(default=CONDITION_RULES)
