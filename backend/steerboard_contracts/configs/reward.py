"""The config of a `reward` run, which an evaluation starts."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from steerboard_contracts.engine import WithEngine
from steerboard_contracts.fields import Count, Precision
from steerboard_contracts.known_quality import KnownQuality


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


CONFIG = RewardConfig
