"""A hinge on log-ratios, as in SLiC: arXiv 2305.10425 and 2309.06657."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.metric_order import PAIR_METRICS
from steerboard_contracts.pairs import REFERENCE, BetaPairConfig
from steerboard_contracts.specs.method import MethodSpec


class HingeConfig(BetaPairConfig):
    """arXiv 2309.06657, hinge-norm: max(0, 1 - beta h)."""

    method: Annotated[Literal["hinge"], Field(description="The training method.")]


SPEC = MethodSpec(
    name="hinge",
    title="Hinge loss (SLiC)",
    about="Pull the sides of a pair apart up to a margin, and leave them alone beyond it.",
    source="arXiv 2309.06657, hinge-norm",
    config=HingeConfig,
    training="steerboard_workers.alignment.methods.hinge:Hinge",
    data=("preferences",),
    use="Align with a hinge loss",
    outputs=("policy",),
    frozen=(REFERENCE,),
    sequences=2,
    leaves_out="equal_sides",
    form=("beta", "reduction", "sft_weight"),
    first_metrics=PAIR_METRICS,
    place=65,
)
