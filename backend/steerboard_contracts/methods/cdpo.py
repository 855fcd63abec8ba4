"""Conservative DPO: DPO with smoothed labels."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.metric_order import PAIR_METRICS
from steerboard_contracts.pairs import REFERENCE, BetaPairConfig, Smoothing
from steerboard_contracts.specs.method import MethodSpec


class CdpoConfig(BetaPairConfig):
    """(1 - e) L(h) + e L(-h), with L the loss of DPO and e the label smoothing."""

    method: Annotated[Literal["cdpo"], Field(description="The training method.")]
    label_smoothing: Smoothing = 0.1


SPEC = MethodSpec(
    name="cdpo",
    title="Conservative DPO",
    label="cDPO",
    about="DPO for noisy labels: stops pulling the sides apart where they differ enough.",
    source="arXiv 2305.18290, Eq. 7, with smoothed labels (E. Mitchell, 2023)",
    config=CdpoConfig,
    training="steerboard_workers.alignment.methods.cdpo:Cdpo",
    data=("preferences",),
    use="Align with cDPO",
    outputs=("policy",),
    frozen=(REFERENCE,),
    sequences=2,
    leaves_out="equal_sides",
    form=("beta", "label_smoothing", "reduction", "sft_weight"),
    first_metrics=PAIR_METRICS,
    place=63,
)
