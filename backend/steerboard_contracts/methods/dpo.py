"""Direct preference optimisation: Eq. 7 of arXiv 2305.18290."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.metric_order import PAIR_METRICS
from steerboard_contracts.pairs import REFERENCE, BetaPairConfig
from steerboard_contracts.specs.method import MethodSpec
from steerboard_contracts.specs.tuning import TuningName


class DpoConfig(BetaPairConfig):
    """Eq. 7 of arXiv 2305.18290: -log sigma(beta h), with h the difference of the sides' log-ratios."""

    method: Annotated[Literal["dpo"], Field(description="The training method.")]


SPEC = MethodSpec(
    name="dpo",
    title="Direct preference optimisation",
    label="DPO",
    about="Make chosen responses likelier than rejected ones, relative to a reference.",
    source="arXiv 2305.18290, Eq. 7",
    recommended=True,
    config=DpoConfig,
    training="steerboard_workers.alignment.methods.dpo:Dpo",
    data=("preferences",),
    use="Align with DPO",
    outputs=("policy",),
    frozen=(REFERENCE,),
    sequences=2,
    leaves_out="equal_sides",
    form=("beta", "reduction", "sft_weight"),
    first_metrics=PAIR_METRICS,
    tuning=TuningName("dpo", {"beta": "beta"}),
    place=60,
)
