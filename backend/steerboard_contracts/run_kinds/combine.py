"""Several rewards of the same answers become one."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from steerboard_contracts.fields import Config
from steerboard_contracts.samples import Finite
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import datasets
from steerboard_contracts.specs.work import rows_of


class CombineConfig(Config):
    """Adds up the rewards of several labelled datasets over the same rows: the sum of weight times z, where z is by the
    mean and sd of each whole dataset."""

    run: Literal["combine"] = "combine"
    weights: Annotated[
        list[Finite],
        Field(
            default=[],
            description="One weight for each of `data`, in their order; empty: each counts 1. A negative weight "
            "inverts a reward.",
        ),
    ]

    @model_validator(mode="after")
    def _fits(self) -> CombineConfig:
        if any(weight == 0 for weight in self.weights):
            raise ValueError("a weight of 0 leaves a reward out: leave its dataset out of `data` instead")
        return self


SPEC = RunKindSpec(
    run="combine",
    title="Combine rewards",
    about="Add up several rewards of the same answers by weight, each z-scored over its labelled dataset.",
    config=CombineConfig,
    slots={"data": datasets("labelled", many=True)},
    makes="labelled",
    lists={"weights": "data"},
    form=("weights",),
    for_data={"labelled": "Combine with other rewards of the same answers"},
    work=rows_of("data.0"),
)
