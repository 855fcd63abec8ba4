"""The config of a `grade` run: rewards of a dataset by a program that knows them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from steerboard_contracts.fields import Config, NonNegative
from steerboard_contracts.known_quality import KnownQuality


class GradeConfig(Config):
    """A program gives every row of a dataset a reward: for experiments whose truth is known.

    `sentiment`: how positive an English answer is, from -5 to 5, five times the compound score of VADER
    (vaderSentiment). `synthetic`: the quality of answers to the synthetic demo data, from 0 to 1.
    """

    run: Literal["grade"] = "grade"
    quality: Annotated[KnownQuality, Field(description="Which program: `sentiment`, or `synthetic` of the demo data.")]
    noise: Annotated[
        NonNegative,
        Field(description="Standard deviation of what is added to each reward at random, as people err."),
    ] = 0.0
    seed: Annotated[int, Field(description="Seed of the noise.")] = 0


CONFIG = GradeConfig
