"""The API's schemas of juries."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from steerboard.evaluation.judges.schemas import Name, Ref

Rule = Literal["majority", "mean"]
MOST_JUDGES = 20


class JuryIn(BaseModel):
    """Judges of the evaluation, by name or id, that count as one source of its report."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    judges: Annotated[list[Ref], Field(min_length=2, max_length=MOST_JUDGES)]
    rule: Annotated[
        Rule,
        Field(
            description="`majority` of the verdicts on each pair of answers, or `mean` of the scores, each judge's "
            "standardised first."
        ),
    ] = "majority"


class JuryOut(BaseModel):
    """`judges`: by name, those that are still there."""

    id: uuid.UUID
    name: str
    judges: list[str]
    rule: Rule
    created_by: str
    created_at: dt.datetime


class Juries(BaseModel):
    """All juries of an evaluation, by age."""

    items: list[JuryOut]
