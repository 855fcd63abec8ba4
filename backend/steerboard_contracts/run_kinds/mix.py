"""Datasets become one."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from steerboard_contracts.fields import Config, Count
from steerboard_contracts.samples import Finite
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import Slot, datasets

MIXED = ("instructions", "preferences", "labelled")


class MixPart(Config):
    """One source of a mixture. `share` is a fraction of `size`; `auto` parts share what is left by their row counts."""

    share: Annotated[Finite, Field(gt=0, le=1)] | Literal["auto"] = "auto"
    side: Literal["chosen", "rejected", "both"] = "both"


class MixConfig(Config):
    run: Literal["mix"] = "mix"
    makes: Annotated[
        Literal["instructions", "preferences"],
        Field(
            description="What the rows become: instructions, for which pairs are taken apart, or preferences, which "
            "keep their pairs and take datasets of preferences only."
        ),
    ] = "instructions"
    parts: Annotated[list[MixPart], Field(min_length=1)]
    size: Count = 100_000
    seed: int = 0

    @model_validator(mode="after")
    def _shares_fit(self) -> MixConfig:
        fixed = sum(p.share for p in self.parts if p.share != "auto")
        if fixed > 1 + 1e-9:
            raise ValueError(f"the shares add up to {fixed:g}, which is more than 1")
        if self.makes == "preferences" and any(part.side != "both" for part in self.parts):
            raise ValueError("a mixture of preferences keeps both sides of its pairs; leave `side` out")
        return self

    @property
    def parts_slot(self) -> Slot:
        """The datasets that this mixture can be made from."""
        return datasets(*(["preferences"] if self.makes == "preferences" else MIXED), many=True)


SPEC = RunKindSpec(
    run="mix",
    title="Mix",
    about="A mixture of rows from several datasets.",
    config=MixConfig,
    slots={"parts": datasets(*MIXED, many=True)},
    makes="instructions",
    makes_by=("makes", {"instructions": "instructions", "preferences": "preferences"}),
    lists={"parts": "parts"},
    form=("makes", "parts", "size"),
)
