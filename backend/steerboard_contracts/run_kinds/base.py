"""A base model comes in."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import Config, Count
from steerboard_contracts.models import ModelRole
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import TEXTS, datasets


class BaseModelConfig(Config):
    """Brings a base model in: a local folder, a hub name, or random weights with a tokenizer trained on the data."""

    run: Literal["base"] = "base"
    source: Annotated[
        str,
        Field(
            max_length=4096,
            description="`random:tiny-llama`, a folder or a .gguf file that the server may read, or a hub name "
            "`org/name[@revision][:file.gguf]`.",
        ),
    ]
    vocabulary: Annotated[int, Field(ge=300, le=262144)] = 4096
    hidden: Annotated[int, Field(ge=32, le=8192)] = 192
    layers: Annotated[int, Field(ge=1, le=128)] = 4
    heads: Count = 6
    max_length: Annotated[int, Field(ge=64, json_schema_extra={"topic": "Model"})] = 512
    role: Annotated[ModelRole | None, Field(description="Role of the model; detected from its files by default.")] = (
        None
    )
    label: Annotated[
        int | None,
        Field(ge=0, description="Index of the label that is the reward, for a classifier with several."),
    ] = None
    seed: int = 0
    fingerprint: Annotated[str | None, Field(description="Set by the planner: what a folder held when planned.")] = None


SPEC = RunKindSpec(
    run="base",
    title="Base model",
    about="Import a model from a folder or the hub, or start from random weights.",
    config=BaseModelConfig,
    slots={"data": datasets(*TEXTS, many=True, required=False)},
    makes="base",
    form=("source", "max_length"),
    result_version=2,
)
