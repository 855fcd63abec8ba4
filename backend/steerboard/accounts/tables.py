"""Projects, people, tokens, sessions, and who changed what."""

from __future__ import annotations

import uuid

from sqlalchemy import ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import ARRAY, TEXT
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, BigInt, CreatedAt, Id, Json, Timestamp

# Audit entries other than rankings, which come by the thousand and are each a record of their own.
NO_RANKING = text("left(action, 8) <> 'ranking.'")


class Project(Base):
    """`split_salt` and `held_out_fraction` decide, for every dataset of the project, where a prompt goes.
    `device_hours_quota`: in a calendar month; `storage_bytes_quota`: at any time; None: no limit.
    `hub_token_sealed`: see `platform.security.secrets`."""

    __tablename__ = "projects"

    id: Mapped[Id]
    name: Mapped[str] = mapped_column(unique=True)
    split_salt: Mapped[str]
    held_out_fraction: Mapped[float]
    device_hours_quota: Mapped[float | None]
    storage_bytes_quota: Mapped[BigInt | None]
    hub_token_sealed: Mapped[str | None]
    created_at: Mapped[CreatedAt]


class User(Base):
    __tablename__ = "users"

    id: Mapped[Id]
    name: Mapped[str] = mapped_column(unique=True)
    password_hash: Mapped[str | None]
    email: Mapped[str | None] = mapped_column(unique=True)
    created_at: Mapped[CreatedAt]


class Membership(Base):
    """Role of a person in a project: owner, engineer, reviewer, annotator, viewer. `by_groups`: groups of the OpenID
    provider gave it, and may change it or take it away."""

    __tablename__ = "memberships"

    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"), primary_key=True)
    user_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("users.id"), primary_key=True)
    role: Mapped[str]
    by_groups: Mapped[bool] = mapped_column(default=False, server_default=text("false"))
    created_at: Mapped[CreatedAt]


class Identity(Base):
    """A person of the OpenID provider, and whose account that is."""

    __tablename__ = "identities"

    issuer: Mapped[str] = mapped_column(primary_key=True)
    subject: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("users.id"), index=True)
    created_at: Mapped[CreatedAt]


class ApiToken(Base):
    """A bearer token, stored as a SHA-256 of its 32 random bytes. `scopes`: read, write, run, admin.

    `user_id`: whose it is. A project's token ends when that person is removed, or may no longer do what it can.
    """

    __tablename__ = "api_tokens"

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("projects.id"), index=True)
    user_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("users.id"))
    name: Mapped[str]
    token_hash: Mapped[str] = mapped_column(unique=True)
    hint: Mapped[str]
    scopes: Mapped[list[str]] = mapped_column(ARRAY(TEXT))
    created_at: Mapped[CreatedAt]
    last_used_at: Mapped[Timestamp | None]
    expires_at: Mapped[Timestamp | None]
    revoked_at: Mapped[Timestamp | None]


class SignInLink(Base):
    """A one-time link, stored hashed."""

    __tablename__ = "sign_in_links"

    code_hash: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("users.id"))
    expires_at: Mapped[Timestamp]
    used_at: Mapped[Timestamp | None]


class BrowserSession(Base):
    """A cookie session, stored hashed, with its CSRF token."""

    __tablename__ = "browser_sessions"

    session_hash: Mapped[str] = mapped_column(primary_key=True)
    user_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("users.id"))
    csrf_token: Mapped[str]
    created_at: Mapped[CreatedAt]
    expires_at: Mapped[Timestamp]


class SignInAttempt(Base):
    """A password that was wrong, or is being checked. Rows live as long as they count."""

    __tablename__ = "sign_in_attempts"
    __table_args__ = (
        Index("ix_sign_in_attempts_user_name_created_at", "user_name", "created_at"),
        Index("ix_sign_in_attempts_address_created_at", "address", "created_at"),
    )

    id: Mapped[Id]
    user_name: Mapped[str]
    address: Mapped[str]
    created_at: Mapped[CreatedAt]


class KnownAddress(Base):
    """The address from which a person signed in. Guesses of their password from elsewhere never lock them out there."""

    __tablename__ = "known_addresses"

    user_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("users.id"), primary_key=True)
    address: Mapped[str] = mapped_column(primary_key=True)
    seen_at: Mapped[Timestamp] = mapped_column(index=True)


class AuditEntry(Base):
    """One change by a person or token, written in the transaction of the change."""

    __tablename__ = "audit_log"
    __table_args__ = (
        Index("ix_audit_log_project_id_id", "project_id", "id"),
        Index("ix_audit_log_without_rankings", "project_id", "id", postgresql_where=NO_RANKING),
    )

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("projects.id"))
    actor: Mapped[str]
    action: Mapped[str]
    target: Mapped[str]
    detail: Mapped[Json]
    created_at: Mapped[CreatedAt]


class IdempotencyKey(Base):
    """What a creating call answered, so that a retry with the same key starts nothing twice."""

    __tablename__ = "idempotency_keys"
    __table_args__ = (UniqueConstraint("actor", "path", "key"),)

    id: Mapped[Id]
    actor: Mapped[str]
    path: Mapped[str]
    key: Mapped[str]
    request_hash: Mapped[str]
    status: Mapped[int | None]
    body: Mapped[Json | None]
    created_at: Mapped[CreatedAt]
