"""An LLM at an endpoint judges the answers of an evaluation."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from steerboard_contracts.fields import Config
from steerboard_contracts.specs.run_kind import RunKindSpec


class JudgeConfig(Config):
    """A judge of an evaluation is asked for its verdicts. Started by the evaluation, never by a recipe.

    `calibrates`: the judge whose calibration it is; both spend one budget.
    """

    run: Literal["judge"] = "judge"
    evaluation: UUID
    judge: UUID
    calibrates: UUID | None = None


SPEC = RunKindSpec(
    run="judge",
    title="Judge",
    about="An LLM at an endpoint judges the answers of an evaluation.",
    config=JudgeConfig,
    slots={},
    asks_endpoint="always",
    resumes="verdicts",
)
