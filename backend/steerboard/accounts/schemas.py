"""What the accounts API takes and gives."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from steerboard.accounts import passwords
from steerboard.accounts.roles import Role, Scope, TokenScope
from steerboard.platform.names import EmailAddress

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")]


class ProjectCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Name
    held_out_fraction: Annotated[
        float | None, Field(gt=0, lt=1, description="Share of prompts that no training sees.")
    ] = None


class ProjectChange(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Name


class ProjectOut(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    id: uuid.UUID
    name: str
    held_out_fraction: float
    created_at: dt.datetime


class TokenCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Name
    scopes: Annotated[list[TokenScope], Field(min_length=1)]
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


class SignIn(BaseModel):
    model_config = ConfigDict(extra="forbid")

    user: Name
    password: Annotated[SecretStr, Field(max_length=passwords.MAXIMUM_LENGTH)]


class PasswordChange(BaseModel):
    """`current` is required if the person already has a password."""

    model_config = ConfigDict(extra="forbid")

    current: Annotated[SecretStr | None, Field(max_length=passwords.MAXIMUM_LENGTH)] = None
    new: Annotated[SecretStr, Field(min_length=passwords.MINIMUM_LENGTH, max_length=passwords.MAXIMUM_LENGTH)]


class SessionProject(BaseModel):
    """A project of the signed-in person. `admin` in `allows` is tokens, members and the audit log."""

    name: str
    id: uuid.UUID
    role: Role
    allows: list[Scope]


class SessionOut(BaseModel):
    """Who is signed in. `csrf_token` goes into the X-CSRF-Token header of every POST, PUT, PATCH and DELETE.

    `is_operator`: they run this server, and may see who signs in.
    """

    user: str
    csrf_token: str
    has_password: bool
    may_create_projects: bool
    is_operator: bool
    projects: list[SessionProject]


class SignInMethods(BaseModel):
    """`oidc`: what the button to the OpenID provider is called; null without one."""

    oidc: str | None


class MemberAdd(BaseModel):
    """`email`: links a new account with its person's first sign-in at the OpenID provider."""

    model_config = ConfigDict(extra="forbid")

    user: Name
    role: Role
    email: EmailAddress | None = None


class MemberChange(BaseModel):
    model_config = ConfigDict(extra="forbid")

    role: Role


class MemberOut(BaseModel):
    """`by_groups`: the role comes from groups of the OpenID provider, and follows them at every sign-in."""

    user: str
    role: Role
    by_groups: bool
    added_at: dt.datetime


class AuditOut(BaseModel):
    """`actor` is `user:NAME`, `token:NAME` or, where a sign-in failed, `nobody`; `action` is `thing.verb`."""

    id: uuid.UUID
    at: dt.datetime
    actor: str
    action: str
    target: str
    details: dict[str, Any]


class SignInLinkOut(BaseModel):
    """`path` opens once, within `expires_at`."""

    path: str
    expires_at: dt.datetime


class MemberAdded(MemberOut):
    """`sign_in`: for a new account, and in this answer only."""

    sign_in: SignInLinkOut | None
