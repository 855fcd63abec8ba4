"""A model answers prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, model_validator

from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.decoding import RequestedCondition, WithDecoding
from steerboard_contracts.fields import Config, Count
from steerboard_contracts.models import POLICIES
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import TEXTS, datasets, models
from steerboard_contracts.specs.work import RowCounts
from steerboard_contracts.turns import TurnText


class Portion(Config):
    """One of several parts of the prompts, by a hash of their text: about equally many, equal ones in the same part."""

    number: Annotated[Count, Field(description="Number of the part, from 1.")] = 1
    of: Annotated[int, Field(ge=1, le=1000, description="Number of parts.")] = 1

    @model_validator(mode="after")
    def _one_of_them(self) -> Portion:
        if self.number > self.of:
            raise ValueError(f"there is no part {self.number} of {self.of}")
        return self


class GenerateConfig(WithDecoding):
    """Answers for the prompts of input `data`, or for the `prompts` given here, at each of `scores`."""

    run: Literal["generate"] = "generate"
    endpoint: Annotated[
        str | None,
        Field(description="Endpoint of the project that answers dataset rows, instead of a model."),
    ] = None
    prompts: list[TurnText] = Field(default=[], description="Prompts of one user turn, instead of a dataset.")
    scores: list[Condition] = Field(default=[], description="With `prompts`: one answer for each score or condition.")
    score: RequestedCondition = None
    limit: Annotated[Count | None, Field(description="At most this many prompts, drawn at random.")] = None
    split: Literal["train", "held_out", "all"] = "train"
    portion: Annotated[
        Portion | None, Field(description="Use only one of several parts of the prompts, such as a round's.")
    ] = None
    shards: Annotated[int, Field(ge=1, le=4096)] = 1


def _answers(config: GenerateConfig, data: Mapping[str, RowCounts]) -> float:
    if config.prompts:
        prompts = len(config.prompts) * max(1, len(config.scores))
    else:
        prompts = data.get("data", RowCounts()).of_split(config.split)
        if config.portion:
            prompts = round(prompts / config.portion.of)
        prompts = min(prompts, config.limit or prompts)
    return float(prompts * config.decoding.n)


SPEC = RunKindSpec(
    run="generate",
    title="Generate",
    about="Answer a dataset of prompts with a model.",
    config=GenerateConfig,
    slots={"model": models(*POLICIES), "data": datasets(*TEXTS, required=False, or_field="prompts")},
    makes="instructions",
    form=("prompts", "decoding", "engine"),
    asks_endpoint="named",
    may_change=("endpoint",),
    resumes="rows",
    work=_answers,
)
