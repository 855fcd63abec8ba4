"""The config of a `judge` run, which an evaluation starts."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from steerboard_contracts.fields import Config


class JudgeConfig(Config):
    """A judge of an evaluation is asked for its verdicts. Started by the evaluation, never by a recipe.

    `calibrates`: the judge whose calibration it is; both spend one budget.
    """

    run: Literal["judge"] = "judge"
    evaluation: UUID
    judge: UUID
    calibrates: UUID | None = None


CONFIG = JudgeConfig
