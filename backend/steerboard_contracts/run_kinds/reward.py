"""A reward model scores the responses of an evaluation."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from steerboard_contracts.engine import WithEngine
from steerboard_contracts.fields import Count, Precision
from steerboard_contracts.known_quality import KnownQuality
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import datasets, models


class RewardConfig(WithEngine):
    """A reward model scores the responses of an evaluation that it has not scored yet. Started by the evaluation.

    `quality`: a program that knows how good an answer is takes the place of a reward model.
    """

    run: Literal["reward"] = "reward"
    evaluation: UUID
    assessment: UUID
    quality: KnownQuality | None = None
    batch_tokens: Count = 8192
    precision: Precision = "fp32"
    seed: int = 0


SPEC = RunKindSpec(
    run="reward",
    title="Reward",
    about="A reward model scores the responses of an evaluation.",
    config=RewardConfig,
    slots={
        "reward": models("reward", required=False),
        "preferences": datasets("preferences", required=False),
        "labelled": datasets("labelled", required=False),
    },
    resumes="rows",
)
