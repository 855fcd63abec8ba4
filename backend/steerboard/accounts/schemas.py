"""What the accounts API takes and gives."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from steerboard.platform.access import Scope

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]


class ProjectCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Name
    held_out_fraction: Annotated[
        float | None, Field(gt=0, lt=1, description="Share of prompts that no training sees.")
    ] = None


class ProjectOut(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    id: uuid.UUID
    name: str
    held_out_fraction: float
    created_at: dt.datetime


class TokenCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Name
    scopes: Annotated[list[Scope], Field(min_length=1)]
    expires_in_days: Annotated[float | None, Field(gt=0, le=3650)] = None


class TokenOut(BaseModel):
    """`hint`: the first characters, to recognise a token by."""

    model_config = ConfigDict(from_attributes=True)

    id: uuid.UUID
    name: str
    hint: str
    scopes: list[str]
    created_at: dt.datetime
    last_used_at: dt.datetime | None
    expires_at: dt.datetime | None
    revoked_at: dt.datetime | None


class TokenCreated(TokenOut):
    """The only answer that ever holds the token itself."""

    token: str


class SessionOut(BaseModel):
    """Who is signed in. `csrf_token` goes into the X-CSRF-Token header of every POST, PUT, PATCH and DELETE."""

    user: str
    csrf_token: str
    projects: list[str]


class SignInLinkOut(BaseModel):
    """`path` opens once, within `expires_at`."""

    path: str
    expires_at: dt.datetime
