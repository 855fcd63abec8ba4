"""Identity preference optimisation: Eq. 17 of arXiv 2310.12036."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import Positive
from steerboard_contracts.metric_order import PAIR_METRICS
from steerboard_contracts.pairs import REFERENCE, ReferencedPairConfig
from steerboard_contracts.specs.method import MethodSpec


class IpoConfig(ReferencedPairConfig):
    """Eq. 17 of arXiv 2310.12036: (h - 1 / (2 tau))^2."""

    method: Annotated[Literal["ipo"], Field(description="The training method.")]
    tau: Annotated[
        Positive,
        Field(
            description="Strength of the pull to the reference: the target difference of log-ratios is "
            "1 / (2 tau). A value for sums does not suit means of log-probs.",
            json_schema_extra={"source": "arXiv 2310.12036: 0.1 to 1"},
        ),
    ] = 0.1


SPEC = MethodSpec(
    name="ipo",
    title="Identity preference optimisation",
    label="IPO",
    about="Bring the sides of each pair a fixed distance apart, which overfits clear-cut pairs less.",
    source="arXiv 2310.12036, Eq. 17",
    config=IpoConfig,
    training="steerboard_workers.alignment.methods.ipo:Ipo",
    data=("preferences",),
    use="Align with IPO",
    outputs=("policy",),
    frozen=(REFERENCE,),
    sequences=2,
    leaves_out="equal_sides",
    form=("tau", "reduction", "sft_weight"),
    first_metrics=PAIR_METRICS,
    place=62,
)
