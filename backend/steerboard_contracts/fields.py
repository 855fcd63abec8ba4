"""What configs are made of."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from steerboard_contracts.samples import Finite

RunKind = Literal[
    "base",
    "train",
    "generate",
    "mix",
    "score",
    "combine",
    "select",
    "evaluate",
    "benchmark",
    "academic",
    "answer",
    "reward",
    "judge",
    "compare",
]
Precision = Literal["auto", "fp32", "bf16"]

Positive = Annotated[Finite, Field(gt=0)]
NonNegative = Annotated[Finite, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]


class Config(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
