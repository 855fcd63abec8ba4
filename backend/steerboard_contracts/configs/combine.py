"""How several rewards of the same answers become one: the config of a `combine` run."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from steerboard_contracts.fields import Config
from steerboard_contracts.samples import Finite


class CombineConfig(Config):
    """Adds up the rewards of several labelled datasets over the same rows: the sum of weight times z, where z is by the
    mean and sd of each whole dataset."""

    run: Literal["combine"] = "combine"
    weights: Annotated[
        list[Finite],
        Field(
            default=[],
            description="One weight for each of `data`, in their order; empty: each counts 1. A negative one turns a "
            "reward around.",
        ),
    ]

    @model_validator(mode="after")
    def _fits(self) -> CombineConfig:
        if any(weight == 0 for weight in self.weights):
            raise ValueError("a weight of 0 leaves a reward out: leave its dataset out of `data` instead")
        return self


CONFIG = CombineConfig
