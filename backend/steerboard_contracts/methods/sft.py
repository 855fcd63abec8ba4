"""Supervised fine-tuning: Eq. 1 of arXiv 2308.12050."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.specs.method import MethodSpec
from steerboard_contracts.specs.tuning import TuningName
from steerboard_contracts.training import TrainingConfig


class SftConfig(TrainingConfig):
    """Eq. 1 of arXiv 2308.12050."""

    method: Annotated[Literal["sft"], Field(description="The training method.")]


SPEC = MethodSpec(
    name="sft",
    title="Supervised fine-tuning",
    label="SFT",
    about="Learn the responses of instructions.",
    source="arXiv 2308.12050, Eq. 1",
    recommended=True,
    config=SftConfig,
    training="steerboard_workers.alignment.methods.sft:Sft",
    data=("instructions",),
    use="Train SFT on it",
    outputs=("sft",),
    baseline=True,
    tuning=TuningName("supervised"),
    place=10,
)
