"""A program that knows how good an answer is gives rewards."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import Config, NonNegative
from steerboard_contracts.known_quality import KnownQuality
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import datasets
from steerboard_contracts.specs.work import rows_of


class GradeConfig(Config):
    """A program gives every row of a dataset a reward: for experiments whose truth is known.

    `sentiment`: how positive an English answer is, from -5 to 5, five times the compound score of VADER
    (vaderSentiment). `synthetic`: the quality of answers to the synthetic demo data, from 0 to 1.
    """

    run: Literal["grade"] = "grade"
    quality: Annotated[
        KnownQuality,
        Field(description="Program that knows the quality: `sentiment`, or `synthetic` for the demo data."),
    ]
    noise: Annotated[
        NonNegative,
        Field(description="Standard deviation of the noise added to each reward, as people err."),
    ] = 0.0
    seed: Annotated[int, Field(description="Seed of the noise.")] = 0


SPEC = RunKindSpec(
    run="grade",
    title="Grade",
    about="Give every row of a dataset a reward by a program that knows it, such as how positive its text is.",
    config=GradeConfig,
    slots={"data": datasets("instructions", "labelled")},
    makes="labelled",
    form=("quality", "noise"),
    work=rows_of("data"),
)
