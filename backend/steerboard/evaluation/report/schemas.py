"""What the API of report links takes and gives."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class ReportLinkCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    expires_in_days: Annotated[int, Field(ge=1, le=365)] = 7


class ReportLinkOut(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    id: uuid.UUID
    created_by: str
    created_at: dt.datetime
    expires_at: dt.datetime


class ReportLinkCreated(ReportLinkOut):
    """The only answer that ever holds the address. `path`: of this server."""

    path: str
