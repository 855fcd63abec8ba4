"""MLE with filtering: Eq. 4 of arXiv 2308.12050."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.samples import Finite
from steerboard_contracts.specs.method import MethodSpec, Preview
from steerboard_contracts.training import PAPER, TrainingConfig


class MleFilterConfig(TrainingConfig):
    """Eq. 4 of arXiv 2308.12050: SFT on rows with z > threshold."""

    method: Annotated[Literal["mle_filter"], Field(description="The training method.")]
    threshold: Annotated[
        Finite,
        Field(
            description="Rows whose normalised reward z is above this are learned.",
            json_schema_extra=PAPER,
        ),
    ] = 0.0


SPEC = MethodSpec(
    name="mle_filter",
    title="MLE with filtering",
    about="SFT on the rows whose reward is above a threshold.",
    source="arXiv 2308.12050, Eq. 4",
    config=MleFilterConfig,
    training="steerboard_workers.alignment.methods.mle_filter:MleFilter",
    data=("labelled",),
    use="Align with MLE and a filter",
    outputs=("policy",),
    learns_from_rewards=True,
    form=("threshold",),
    preview=Preview("selection", {"threshold": "threshold"}),
    place=30,
)
