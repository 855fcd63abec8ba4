"""What the API sees of versions and of their differences."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Literal

from pydantic import BaseModel, Field

from steerboard.datasets.schemas import SampleOut

Change = Literal["added", "removed", "changed"]


class Version(BaseModel):
    """A dataset of a family: all that were cleaned or edited from one another."""

    id: uuid.UUID
    name: str
    rows: int
    held_out_rows: int
    made_by: str = Field(description="`cleaning`, `edit`, or where the first of the family is from, such as `file`.")
    parent_id: uuid.UUID | None
    actor: str | None = Field(description="Who cleaned or edited.")
    dropped: int = Field(description="Rows of the parent that are not in it.")
    edited: int = Field(description="Rows of the parent that were edited or flipped.")
    created_at: dt.datetime


class Difference(BaseModel):
    """Rows of `before` are `removed`, `changed` or the same in `after`. `by`: whether rows were matched by their place
    in versions of one dataset, or by their content."""

    before: str
    after: str
    by: Literal["version", "content"]
    added: int
    removed: int
    changed: int
    same: int


class DifferentRow(BaseModel):
    """`fields`: those that differ in a changed row."""

    change: Change
    before: SampleOut | None
    after: SampleOut | None
    fields: list[str]
