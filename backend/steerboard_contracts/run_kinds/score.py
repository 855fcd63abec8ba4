"""A reward model scores a dataset."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.engine import WithEngine
from steerboard_contracts.fields import Count, Precision
from steerboard_contracts.models import Aggregate
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import datasets, models
from steerboard_contracts.specs.work import rows_of


class ScoreConfig(WithEngine):
    run: Literal["score"] = "score"
    aggregate: Annotated[
        Aggregate | None,
        Field(
            description="How a process reward model's steps become the reward of an answer; by default as the model's "
            "training set it.",
            json_schema_extra={"source": "minimum: arXiv 2312.08935; product: 2305.20050"},
        ),
    ] = None
    batch_tokens: Count = 8192
    precision: Precision = "fp32"
    shards: Annotated[int, Field(ge=1, le=4096)] = 1


SPEC = RunKindSpec(
    run="score",
    title="Score",
    about="Give every row of a dataset a reward.",
    config=ScoreConfig,
    slots={"data": datasets("instructions", "labelled"), "reward": models("reward")},
    makes="labelled",
    form=("engine",),
    resumes="rows",
    work=rows_of("data"),
)
