"""A preference model compares the answers of an evaluation."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from steerboard_contracts.fields import Config, Count, Precision
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import models


class CompareConfig(Config):
    """A preference model, as a judge of an evaluation, compares the answers that it has not compared yet. Started by
    the evaluation, never by a recipe."""

    run: Literal["compare"] = "compare"
    evaluation: UUID
    judge: UUID
    batch_tokens: Count = 8192
    precision: Precision = "fp32"


SPEC = RunKindSpec(
    run="compare",
    title="Compare",
    about="A preference model compares the answers of an evaluation.",
    config=CompareConfig,
    slots={"judge": models("preference")},
    resumes="rows",
)
