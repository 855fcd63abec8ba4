"""The config of a `generate` run: which prompts are answered."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.decoding import Asked, WithDecoding
from steerboard_contracts.fields import Config, Count
from steerboard_contracts.samples import TurnText


class Portion(Config):
    """One of several parts of the prompts, by a hash of their text: about equally many, equal ones in the same part."""

    number: Annotated[Count, Field(description="Which part, from 1.")] = 1
    of: Annotated[int, Field(ge=1, le=1000, description="How many parts there are.")] = 1

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
        Field(description="Instead of a model: one of the project's endpoints, asked for dataset rows."),
    ] = None
    prompts: list[TurnText] = Field(default=[], description="Instead of a dataset: prompts of one user turn.")
    scores: list[Condition] = Field(default=[], description="With `prompts`: one answer for each score or condition.")
    score: Asked = None
    limit: Annotated[Count | None, Field(description="At most this many prompts, drawn at random.")] = None
    split: Literal["train", "held_out", "all"] = "train"
    portion: Annotated[
        Portion | None, Field(description="Only one of several parts of the prompts, such as that of a round.")
    ] = None
    shards: Annotated[int, Field(ge=1, le=4096)] = 1


CONFIG = GenerateConfig
