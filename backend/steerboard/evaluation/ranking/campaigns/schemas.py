"""What the campaigns API, of those who ask for rankings, takes and gives."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

CampaignState = Literal["open", "paused", "closed"]
Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Instructions = Annotated[str, Field(max_length=20_000)]
Overlap = Annotated[int, Field(ge=1, le=100, description="How many annotators rank each item.")]
LockSeconds = Annotated[
    int, Field(ge=10, le=86_400, description="How long an item is kept for the annotator who works on it.")
]
Rank = Annotated[int, Field(ge=1, le=8)]


class Criterion(BaseModel):
    """A ranking of its own."""

    model_config = ConfigDict(extra="forbid")

    name: Words
    description: Annotated[str, Field(max_length=2_000)] = ""


class CampaignCreate(BaseModel):
    """`criteria`: none for one overall ranking. `entrants`: all of the evaluation's where none are named."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str | None, Field(description="Annotators see it. Null: ranking-1, ranking-2, ...")] = None
    instructions: Instructions = ""
    criteria: Annotated[list[Criterion], Field(max_length=8)] = []
    entrants: Annotated[list[str] | None, Field(min_length=2, max_length=8)] = None
    overlap: Overlap = 1
    lock_seconds: LockSeconds = 600
    gold_every: Annotated[
        int, Field(ge=0, le=1_000, description="One of so many items is a gold one; 0: gold items come first.")
    ] = 0
    limit: Annotated[int | None, Field(ge=1, description="Ask about this many prompts, drawn at random.")] = None

    @model_validator(mode="after")
    def _criteria_differ(self) -> CampaignCreate:
        names = [criterion.name for criterion in self.criteria]
        if len(set(names)) < len(names):
            raise ValueError("two criteria have the same name")
        return self


class CampaignChange(BaseModel):
    """`paused` hands out nothing new, and takes what annotators hold; `closed` takes nothing. `overlap` only rises."""

    model_config = ConfigDict(extra="forbid")

    state: CampaignState | None = None
    overlap: Overlap | None = None
    instructions: Instructions | None = None
    lock_seconds: LockSeconds | None = None
    gold_every: Annotated[int | None, Field(ge=0, le=1_000)] = None


class AnnotatorFigures(BaseModel):
    """`gold`: share of the pairs of answers of gold items that were put in the known order, ties counting 1/2."""

    annotator: str
    done: int
    skipped: int
    flagged: int
    median_seconds: float | None
    gold: float | None
    gold_pairs: int
    last_at: dt.datetime | None


class CampaignOut(BaseModel):
    """`done_items` have `overlap` rankings. `skipped_by_all`: not done, and everyone who has taken part skipped them.

    `warnings`: words of the campaign that tell annotators what they should not know.
    """

    id: uuid.UUID
    name: str
    state: CampaignState
    instructions: str
    criteria: list[Criterion]
    entrants: list[str]
    overlap: int
    lock_seconds: int
    gold_every: int
    items: int
    done_items: int
    gold_items: int
    rankings: int
    skipped_by_all: int
    annotators: list[AnnotatorFigures]
    warnings: list[str]
    created_by: str
    created_at: dt.datetime


class Campaigns(BaseModel):
    """The campaigns of one evaluation, oldest first."""

    items: list[CampaignOut]


class GoldRanks(BaseModel):
    """The ranks that are known to be right: one for every entrant of the campaign, by name; 1 is best."""

    model_config = ConfigDict(extra="forbid")

    ranks: dict[str, Rank]


class GoldItem(BaseModel):
    position: int
    ranks: dict[str, int]


class GoldItems(BaseModel):
    items: list[GoldItem]


class RankingOut(BaseModel):
    """One annotator's ranking of one item. `shown`: the entrants in the order of the screen; `ranks` by name."""

    id: uuid.UUID
    position: int
    question_id: str
    annotator: str
    shown: list[str]
    ranks: dict[str, int] | None
    criteria_ranks: dict[str, dict[str, int]]
    comment: str | None
    flag: str | None
    seconds: float | None
    gold: bool
    submitted_at: dt.datetime | None


class FlagOut(BaseModel):
    """An item that an annotator flagged or skipped, in their words."""

    position: int
    question_id: str
    annotator: str
    kind: Literal["flag", "skip"]
    reason: str
    comment: str | None
    at: dt.datetime | None


class Flags(BaseModel):
    """Newest first, at most 1,000."""

    items: list[FlagOut]


class AnnotatorAdd(BaseModel):
    """Null makes a name: annotator-1, annotator-2, ..."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")] = None


class AnnotatorLink(BaseModel):
    """`link`: a path of the dashboard that signs in once, shown in this answer only, and leads to the campaign."""

    annotator: str
    link: str
    expires_at: dt.datetime
