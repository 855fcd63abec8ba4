"""Robust DPO: arXiv 2403.00409."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.metric_order import PAIR_METRICS
from steerboard_contracts.pairs import REFERENCE, BetaPairConfig, Smoothing
from steerboard_contracts.specs.method import MethodSpec


class RobustDpoConfig(BetaPairConfig):
    """arXiv 2403.00409: ((1 - e) L(h) - e L(-h)) / (1 - 2e), on average the loss of DPO without the flipped pairs."""

    method: Annotated[Literal["robust_dpo"], Field(description="The training method.")]
    label_smoothing: Smoothing = 0.1


SPEC = MethodSpec(
    name="robust_dpo",
    title="Robust DPO",
    about="DPO for noisy labels: an unbiased estimate of its loss on clean ones.",
    source="arXiv 2403.00409",
    config=RobustDpoConfig,
    training="steerboard_workers.alignment.methods.robust_dpo:RobustDpo",
    data=("preferences",),
    use="Align with robust DPO",
    outputs=("policy",),
    frozen=(REFERENCE,),
    sequences=2,
    leaves_out="equal_sides",
    form=("beta", "label_smoothing", "reduction", "sft_weight"),
    first_metrics=PAIR_METRICS,
    place=64,
)
