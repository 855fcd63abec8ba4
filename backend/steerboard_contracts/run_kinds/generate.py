"""A model answers prompts."""

from __future__ import annotations

from collections.abc import Mapping

from steerboard_contracts.configs.generate import GenerateConfig
from steerboard_contracts.models import POLICIES
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import TEXTS, datasets, models
from steerboard_contracts.specs.work import RowCounts


def _answers_each(config: GenerateConfig) -> int:
    return config.decoding.n


def _answers(config: GenerateConfig, data: Mapping[str, RowCounts]) -> float:
    if config.prompts:
        prompts = len(config.prompts) * max(1, len(config.scores))
    else:
        prompts = data.get("data", RowCounts()).of_split(config.split)
        if config.portion:
            prompts = round(prompts / config.portion.of)
        prompts = min(prompts, config.limit or prompts)
    return float(prompts * _answers_each(config))


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
    work=_answers,
    answers=_answers_each,
    decodes_at_once="batch_size",
    place=10,
)
