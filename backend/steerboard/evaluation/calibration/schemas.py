"""The API's schemas of calibrations."""

from __future__ import annotations

import uuid
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from steerboard.evaluation.judges.schemas import JudgeOut, Ref

MOST_PAIRS = 2000


class CalibrationIn(BaseModel):
    """Pairs whose better side is known: a dataset of preferences, and how many of its rows are drawn by the seed."""

    model_config = ConfigDict(extra="forbid")

    dataset: Ref
    limit: Annotated[int, Field(ge=1, le=MOST_PAIRS)] = 100
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0


class CalibrationOut(BaseModel):
    """The evaluation that holds the pairs, with entrants `chosen` and `rejected`, and the judge at work on it."""

    evaluation_id: uuid.UUID
    evaluation: str
    judge: JudgeOut
