"""Datasets become one."""

from __future__ import annotations

from steerboard_contracts.configs.mix import MixConfig
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import datasets

SPEC = RunKindSpec(
    run="mix",
    title="Mix",
    about="A mixture of rows from several datasets.",
    config=MixConfig,
    slots={"parts": datasets("instructions", "preferences", "labelled", many=True)},
    makes="instructions",
    makes_thing="dataset",
    lists={"parts": "parts"},
    form=("parts", "size"),
    stage="mix",
    place=30,
)
