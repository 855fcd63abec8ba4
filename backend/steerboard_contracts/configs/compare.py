"""The config of a `compare` run, which an evaluation starts."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from steerboard_contracts.fields import Config, Count, Precision


class CompareConfig(Config):
    """A preference model, as a judge of an evaluation, compares the answers that it has not compared yet. Started by
    the evaluation, never by a recipe."""

    run: Literal["compare"] = "compare"
    evaluation: UUID
    judge: UUID
    batch_tokens: Count = 8192
    precision: Precision = "fp32"


CONFIG = CompareConfig
