"""Simple preference optimisation: Eq. 6 of arXiv 2405.14734."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import LearningRate, NonNegative, Positive
from steerboard_contracts.metric_order import PAIR_METRICS
from steerboard_contracts.pairs import PairConfig, SftWeight
from steerboard_contracts.specs.method import MethodSpec

# The settings of the models that its authors trained.
TUNED = {"source": "arXiv 2405.14734, for Llama-3-Instruct; beta 2 to 10, ratio 0.3 to 1, lr 3e-7 to 1e-6"}


class SimpoConfig(PairConfig):
    """Eq. 6 of arXiv 2405.14734: -log sigma(beta (m_w - m_l) - gamma), m the mean log-prob of a response's tokens."""

    method: Annotated[Literal["simpo"], Field(description="The training method.")]
    lr: Annotated[LearningRate, Field(json_schema_extra=TUNED)] = 1e-6
    beta: Annotated[Positive, Field(description="Factor of the mean log-probs.", json_schema_extra=TUNED)] = 2.5
    gamma_beta_ratio: Annotated[
        NonNegative,
        Field(
            description="Target difference of the sides' mean log-probs: gamma / beta.",
            json_schema_extra=TUNED,
        ),
    ] = 0.55
    sft_weight: SftWeight = 0.0


SPEC = MethodSpec(
    name="simpo",
    title="Simple preference optimisation",
    label="SimPO",
    about="Make chosen responses likelier per token than rejected ones by a margin, without a reference.",
    source="arXiv 2405.14734, Eq. 6",
    config=SimpoConfig,
    training="steerboard_workers.alignment.methods.simpo:Simpo",
    data=("preferences",),
    use="Align with SimPO",
    outputs=("policy",),
    sequences=2,
    leaves_out="equal_sides",
    form=("beta", "gamma_beta_ratio", "sft_weight"),
    first_metrics=PAIR_METRICS,
    place=67,
)
