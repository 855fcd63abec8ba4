"""What the API of links takes and gives."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

ShareKind = Literal["report", "runs", "answers"]


class ShareLinkCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    expires_in_days: Annotated[int, Field(ge=1, le=365)] = 7


class ShareLinkOut(BaseModel):
    """`title`: the evaluation, the runs, or the beginning of the prompt that it shows."""

    model_config = ConfigDict(from_attributes=True)

    id: uuid.UUID
    kind: ShareKind
    title: str
    created_by: str
    created_at: dt.datetime
    expires_at: dt.datetime


class ShareLinkCreated(ShareLinkOut):
    """The only answer that ever holds the address. `path`: of this server."""

    path: str
