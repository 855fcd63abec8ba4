"""The API's schemas of tags, notes, archive and favourites."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from steerboard_contracts.turns import TurnText

ItemType = Literal["run", "pipeline", "model", "dataset", "evaluation"]

MOST_TAGS = 50
Tag = Annotated[str, Field(pattern=r"^[^\s,\"()][^,\"()\x00-\x1f]{0,63}$", description="Without commas and quotes.")]


class Marks(BaseModel):
    """What people put on a thing. `favourite`: of the one who asks. `notes`: in Markdown; `notes_html` is safe to show,
    and empty in lists."""

    tags: list[str] = []
    notes: str = ""
    notes_html: str = ""
    favourite: bool = False
    archived_at: dt.datetime | None = None
    archived_by: str | None = None


class MarksChange(BaseModel):
    """`tags` replaces all of them, `add_tags` and `remove_tags` change some. What is null stays as it is."""

    model_config = ConfigDict(extra="forbid")

    tags: Annotated[list[Tag] | None, Field(max_length=MOST_TAGS)] = None
    add_tags: Annotated[list[Tag], Field(max_length=MOST_TAGS)] = []
    remove_tags: Annotated[list[str], Field(max_length=MOST_TAGS)] = []
    notes: Annotated[str | None, Field(max_length=100_000)] = None
    archived: bool | None = None

    @field_validator("tags", "add_tags", "remove_tags")
    @classmethod
    def _trimmed(cls, tags: list[str] | None) -> list[str] | None:
        return None if tags is None else list(dict.fromkeys(tag.strip() for tag in tags))


LONGEST_COMMENT = 10_000


class CommentIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: Annotated[TurnText, Field(max_length=LONGEST_COMMENT, description="In Markdown.")]


class CommentOut(BaseModel):
    """`html`: the Markdown of `text`, safe to show. `mine`: the caller wrote it, and may edit it. `deletable`: the
    caller may delete it."""

    id: uuid.UUID
    text: str
    html: str
    actor: str
    created_at: dt.datetime
    edited_at: dt.datetime | None
    mine: bool
    deletable: bool


class TagCount(BaseModel):
    tag: str
    count: int
