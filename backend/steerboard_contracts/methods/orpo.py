"""Odds ratio preference optimisation: Eq. 6 of arXiv 2403.07691."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import LearningRate, Positive
from steerboard_contracts.metric_order import PAIR_METRICS
from steerboard_contracts.pairs import PairConfig
from steerboard_contracts.specs.method import MethodSpec

TUNED = {"source": "arXiv 2403.07691: lambda 0.1, learning rate 5e-6"}


class OrpoConfig(PairConfig):
    """Eq. 6 and 7 of arXiv 2403.07691: SFT on the chosen response - beta log sigma(difference of the log odds)."""

    method: Annotated[Literal["orpo"], Field(description="The training method.")]
    lr: Annotated[LearningRate, Field(json_schema_extra=TUNED)] = 5e-6
    beta: Annotated[
        Positive, Field(description="Weight of the odds ratio: the paper's lambda.", json_schema_extra=TUNED)
    ] = 0.1
    sft_on: Annotated[
        Literal["response", "sequence"],
        Field(
            description="Supervised fine-tuning learns this of the chosen side: the response, or its prompt as well.",
            json_schema_extra={
                "source": "response: arXiv 2403.07691, Eq. 2; sequence: the code of its authors, and TRL"
            },
        ),
    ] = "response"


SPEC = MethodSpec(
    name="orpo",
    title="Odds ratio preference optimisation",
    label="ORPO",
    about="SFT and preferences in one step from a base model, without a reference.",
    source="arXiv 2403.07691, Eq. 6",
    config=OrpoConfig,
    training="steerboard_workers.alignment.methods.orpo:Orpo",
    data=("preferences",),
    use="Align with ORPO",
    outputs=("policy",),
    sequences=2,
    leaves_out="equal_sides",
    form=("beta", "sft_on"),
    first_metrics=PAIR_METRICS,
    place=68,
)
