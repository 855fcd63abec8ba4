"""What the API sees of changes, flags and comments of rows."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from steerboard.datasets.schemas import SampleOut
from steerboard.marks.schemas import CommentOut

Action = Literal["edit", "flip", "remove"]
Marked = Literal["flagged", "commented", "changed"]


class RowChangeIn(BaseModel):
    """`edit` gives the whole `sample`; `flip` swaps the sides of a pair, or inverts a thumb; `remove` leaves the row
    out of the next version."""

    model_config = ConfigDict(extra="forbid")

    action: Action
    sample: Annotated[dict[str, Any] | None, Field(description="The fields of the kind, all of them.")] = None
    based_on: Annotated[
        uuid.UUID | None, Field(description="The `revision` that this change replaces; null where there is none.")
    ] = None

    @model_validator(mode="after")
    def _complete(self) -> RowChangeIn:
        if (self.action == "edit") != (self.sample is not None):
            raise ValueError("`edit` needs a `sample`, and the other actions have none")
        return self


class RowChangeOut(BaseModel):
    """A change that is not in a version yet. `sample` is null for a row that is to be removed."""

    action: Action
    sample: dict[str, Any] | None
    revision: uuid.UUID
    actor: str
    changed_at: dt.datetime


class RowFlagIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    reason: Annotated[str, Field(max_length=500, pattern=r"^[^\x00]*$")] = ""


class RowFlagOut(BaseModel):
    reason: str
    actor: str
    created_at: dt.datetime


class RowReview(BaseModel):
    """What people noted on one row. `sample` is the stored one, whole."""

    row: int
    sample: dict[str, Any]
    change: RowChangeOut | None
    flag: RowFlagOut | None
    comments: list[CommentOut]


class ReviewSummary(BaseModel):
    """Counts of rows. `actors`: who made the pending changes."""

    edited: int
    flipped: int
    removed: int
    flagged: int
    commented: int
    actors: list[str]
    changed_at: dt.datetime | None


class PendingRow(BaseModel):
    """A row and what the next version will have in its place, null where it is removed."""

    row: int
    change: RowChangeOut
    before: SampleOut
    after: SampleOut | None


class Discarded(BaseModel):
    rows: int


class VersionCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Annotated[str | None, Field(description="Name of the new version. Null: DATASET-edited-N.")] = None
