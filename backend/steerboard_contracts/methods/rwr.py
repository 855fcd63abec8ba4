"""Reward-weighted regression: Eq. 5 of arXiv 2308.12050."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import Positive
from steerboard_contracts.specs.method import MethodSpec, Preview
from steerboard_contracts.training import PAPER, TrainingConfig


class RwrConfig(TrainingConfig):
    """Eq. 5 of arXiv 2308.12050: weights exp(z / beta)."""

    method: Annotated[Literal["rwr"], Field(description="The training method.")]
    beta: Annotated[
        Positive,
        Field(
            description="Temperature of the weights; the larger, the nearer to supervised fine-tuning.",
            json_schema_extra=PAPER,
        ),
    ] = 5.0
    self_normalised: Annotated[
        bool, Field(description="Divide by the sum of the batch's weights, so that only their ratios matter.")
    ] = False
    max_weight: Annotated[Positive | None, Field(description="Larger weights are cut to this; null cuts none.")] = 20.0


SPEC = MethodSpec(
    name="rwr",
    title="Reward-weighted regression",
    label="RWR",
    about="SFT with weights that grow with the reward.",
    source="arXiv 2308.12050, Eq. 5",
    config=RwrConfig,
    training="steerboard_workers.alignment.methods.rwr:Rwr",
    data=("labelled",),
    use="Align with reward-weighted regression",
    outputs=("policy",),
    learns_from_rewards=True,
    form=("beta", "max_weight", "self_normalised"),
    preview=Preview("weights", {"beta": "beta", "max_weight": "max_weight", "self_normalised": "self_normalised"}),
    place=40,
)
