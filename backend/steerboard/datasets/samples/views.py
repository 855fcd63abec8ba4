"""Named filters of samples, which a project keeps for all of its datasets."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Literal

from fastapi import Depends
from pydantic import BaseModel, ConfigDict, Field

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.datasets.review.schemas import Marked
from steerboard.datasets.schemas import Match
from steerboard.marks import views
from steerboard.marks.tables import SavedView
from steerboard.platform.http.errors import problems

router = Router(prefix="/sample-views", tags=["datasets"])

Read = Annotated[Access, Depends(AccessTo("read"))]
Write = Annotated[Access, Depends(AccessTo("write"))]
Reward = Annotated[float | None, Field(allow_inf_nan=False)]


class SampleViewQuery(BaseModel):
    """The filters of the list of samples that a view keeps; what is null filters nothing."""

    model_config = ConfigDict(extra="forbid")

    q: Annotated[str | None, Field(max_length=500, pattern=r"^[^\x00]*$")] = None
    match: Match = "words"
    split: Literal["train", "held_out"] | None = None
    source: Annotated[str | None, Field(max_length=1000, pattern=r"^[^\x00]*$")] = None
    reward_min: Reward = None
    reward_max: Reward = None
    marked: Marked | None = None


class SampleViewIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    query: SampleViewQuery


class SampleView(BaseModel):
    id: uuid.UUID
    name: str
    query: SampleViewQuery
    created_by: str
    created_at: dt.datetime


@router.get("", responses=problems(404))
def list_sample_views(session: Db, access: Read) -> list[SampleView]:
    """The filters of samples that the project keeps, by name."""
    return [_view(row) for row in views.views_of(session, access.project, "samples")]


@router.put("/{view}", responses=problems(404, 409))
def keep_sample_view(view: str, body: SampleViewIn, session: Db, access: Write) -> SampleView:
    """Keep filters of samples under a name, in place of what the name had."""
    kept = views.keep(session, access, "samples", view, body.query)
    audit(session, access, "sample_view.keep", f"view {view}", body.query.model_dump())
    return _view(kept)


@router.delete("/{view}", status_code=204, responses=problems(404))
def delete_sample_view(view: str, session: Db, access: Write) -> None:
    """Delete a view. No dataset is touched."""
    views.remove(session, access.project, "samples", view)
    audit(session, access, "sample_view.delete", f"view {view}")


def _view(row: SavedView) -> SampleView:
    return SampleView.model_validate(row, from_attributes=True)
