"""Mixed preference optimisation: arXiv 2411.10442."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from steerboard_contracts.fields import NonNegative
from steerboard_contracts.metric_order import PAIR_METRICS
from steerboard_contracts.pairs import REFERENCE, BetaPairConfig, SftWeight
from steerboard_contracts.specs.method import MethodSpec

MPO = {"source": "arXiv 2411.10442: weights 0.8, 0.2 and 1"}


class MpoConfig(BetaPairConfig):
    """arXiv 2411.10442: which side is better (DPO), whether each side is good, and SFT on the chosen one.

    The second is -log sigma(r_w) - log sigma(-r_l) with r the rewards. The paper shifts them by their moving average;
    here, as in TRL, nothing does.
    """

    method: Annotated[Literal["mpo"], Field(description="The training method.")]
    preference_weight: Annotated[
        NonNegative, Field(description="Weight of the preference between the sides.", json_schema_extra=MPO)
    ] = 0.8
    quality_weight: Annotated[
        NonNegative, Field(description="Weight of the quality of each side alone.", json_schema_extra=MPO)
    ] = 0.2
    sft_weight: SftWeight = 1.0

    @model_validator(mode="after")
    def _learns_something(self) -> MpoConfig:
        if not self.preference_weight + self.quality_weight + self.sft_weight:
            raise ValueError("one of preference_weight, quality_weight and sft_weight must be above 0")
        return self


SPEC = MethodSpec(
    name="mpo",
    title="Mixed preference optimisation",
    label="MPO",
    about="Learn together which side is better, whether each is good, and the chosen one itself.",
    source="arXiv 2411.10442",
    config=MpoConfig,
    training="steerboard_workers.alignment.methods.mpo:Mpo",
    data=("preferences",),
    use="Align with MPO",
    outputs=("policy",),
    frozen=(REFERENCE,),
    sequences=2,
    leaves_out="equal_sides",
    form=("beta", "reduction", "preference_weight", "quality_weight", "sft_weight"),
    first_metrics=PAIR_METRICS,
    place=66,
)
