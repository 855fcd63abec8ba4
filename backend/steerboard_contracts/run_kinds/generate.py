"""A model answers prompts."""

from __future__ import annotations

from steerboard_contracts.configs.generate import GenerateConfig
from steerboard_contracts.models import POLICIES
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import TEXTS, datasets, models

SPEC = RunKindSpec(
    run="generate",
    title="Generate",
    about="Answer a dataset of prompts with a model.",
    config=GenerateConfig,
    slots={"model": models(*POLICIES), "data": datasets(*TEXTS, required=False)},
    makes="instructions",
    makes_thing="dataset",
    form=("prompts", "decoding", "engine"),
    asks_endpoint="named",
    may_change=("endpoint",),
    stage="generate",
    written_out={"data": "prompts"},
    resumes="rows",
    shared_cost=True,
    place=10,
)
