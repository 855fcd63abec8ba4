"""A model or a dataset goes to a repository of a hub."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field

from steerboard_contracts.fields import Config
from steerboard_contracts.files.base_sources import HUB_REPOSITORY
from steerboard_contracts.models import ModelRole
from steerboard_contracts.samples import SAMPLE_CLASSES
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import datasets, models

MOST_CARD = 200_000

Repository = Annotated[
    str, Field(pattern=HUB_REPOSITORY, max_length=193, description="Repository on the hub: `org/name`.")
]
Card = Annotated[
    str, Field(max_length=MOST_CARD, pattern=r"^[^\x00]*$", description="README.md: YAML metadata, then Markdown.")
]
WeightsForm = Literal["merged", "adapter"]


class PushConfig(Config):
    """Sends input `model` or `data` to a repository, in one commit. Started by the endpoints that write its card."""

    run: Literal["push"] = "push"
    repo: Repository
    private: bool = True
    weights: WeightsForm = "merged"
    base: Annotated[str | None, Field(max_length=400, description="Hub name of the model below an adapter.")] = None
    card: Card


SPEC = RunKindSpec(
    run="push",
    title="Push to a hub",
    about="Send a model or a dataset to a repository of a hub.",
    config=PushConfig,
    slots={
        "model": models(*get_args(ModelRole), required=False),
        "data": datasets(*SAMPLE_CLASSES, required=False),
    },
    may_change=("repo",),
)
