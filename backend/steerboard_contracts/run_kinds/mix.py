"""Datasets become one."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from steerboard_contracts.fields import Config, Count
from steerboard_contracts.samples import Finite
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import datasets


class MixPart(Config):
    """One source of a mixture. `share` is a fraction of `size`; `auto` parts share what is left by their row counts."""

    share: Annotated[Finite, Field(gt=0, le=1)] | Literal["auto"] = "auto"
    side: Literal["chosen", "rejected", "both"] = "both"


class MixConfig(Config):
    run: Literal["mix"] = "mix"
    parts: Annotated[list[MixPart], Field(min_length=1)]
    size: Count = 100_000
    seed: int = 0

    @model_validator(mode="after")
    def _shares_fit(self) -> MixConfig:
        fixed = sum(p.share for p in self.parts if p.share != "auto")
        if fixed > 1 + 1e-9:
            raise ValueError(f"the shares add up to {fixed:g}, which is more than 1")
        return self


SPEC = RunKindSpec(
    run="mix",
    title="Mix",
    about="A mixture of rows from several datasets.",
    config=MixConfig,
    slots={"parts": datasets("instructions", "preferences", "labelled", many=True)},
    makes="instructions",
    lists={"parts": "parts"},
    form=("parts", "size"),
)
