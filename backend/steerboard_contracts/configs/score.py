"""The config of a `score` run: rewards of a dataset."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.engine import WithEngine
from steerboard_contracts.fields import Count, Precision


class ScoreConfig(WithEngine):
    run: Literal["score"] = "score"
    batch_tokens: Count = 8192
    precision: Precision = "fp32"
    shards: Annotated[int, Field(ge=1, le=4096)] = 1


CONFIG = ScoreConfig
