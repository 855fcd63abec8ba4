"""A base model comes in."""

from __future__ import annotations

from steerboard_contracts.configs.base import BaseModelConfig
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import TEXTS, datasets

SPEC = RunKindSpec(
    run="base",
    title="Base model",
    about="Bring in a folder or a hub name, or start from random weights.",
    config=BaseModelConfig,
    slots={"data": datasets(*TEXTS, many=True, required=False)},
    makes="base",
    makes_thing="model",
    form=("source", "max_length"),
    reads_hub=True,
    reads_folders="models",
    stage="base",
    place=60,
)
