"""Comparisons with their answers, and control curves. Postgres is the only truth about pending work and answers."""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, BigInt, ConditionValue, CreatedAt, Id, Json, Timestamp

STATES = ("queued", "running", "succeeded", "failed", "cancelled")
_STATES_SQL = ", ".join(f"'{state}'" for state in STATES)
_OPEN = text("ended_at IS NULL")


class Comparison(Base):
    """One prompt for several columns. `lease_owner` is the worker that serves it; a write on its behalf names
    `attempt` and changes nothing when the row has moved on. `ended_at` is null while an answer is open. `blind`: it
    belongs to another domain, which shows it without names; the playground's own routes do not know it."""

    __tablename__ = "playground_comparisons"
    __table_args__ = (
        Index("ix_playground_comparisons_project_id_id", "project_id", "id"),
        Index("ix_playground_comparisons_open", "id", postgresql_where=_OPEN),
    )

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    prompt: Mapped[list[dict[str, str]]] = mapped_column(JSONB)
    blind: Mapped[bool] = mapped_column(default=False)
    seed: Mapped[BigInt]
    reward_model_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("models.id", ondelete="SET NULL"))
    reward_model_name: Mapped[str | None]
    created_by: Mapped[str]
    created_at: Mapped[CreatedAt]
    attempt: Mapped[int]
    lease_owner: Mapped[str | None]
    lease_expires_at: Mapped[Timestamp | None]
    ended_at: Mapped[Timestamp | None]


class PlaygroundAnswer(Base):
    """One column. Answers with the same `reuse_key` are the same answer. `name` is what the model or endpoint was
    called, and stays when it is deleted. `prompt`: a conversation of its own, where that is not the comparison's.
    `prompt_tokens`: tokens of the prompt as it was read, where the engine or endpoint has counted them."""

    __tablename__ = "playground_answers"
    __table_args__ = (
        CheckConstraint(f"state IN ({_STATES_SQL})", name="state"),
        CheckConstraint("num_nonnulls(model_id, endpoint_id) <= 1", name="one_source"),
        Index("ix_playground_answers_reuse_key", "reuse_key", postgresql_where=text("state = 'succeeded'")),
    )

    comparison_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("playground_comparisons.id"), primary_key=True)
    place: Mapped[int] = mapped_column(primary_key=True)
    model_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("models.id", ondelete="SET NULL"))
    endpoint_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("endpoints.id", ondelete="SET NULL"))
    name: Mapped[str]
    prompt: Mapped[list[dict[str, str]] | None] = mapped_column(JSONB(none_as_null=True))
    score: Mapped[ConditionValue | None]
    score_text: Mapped[str | None]
    decoding: Mapped[Json]
    seed: Mapped[BigInt]
    reuse_key: Mapped[str]
    state: Mapped[str]
    waits_for: Mapped[str | None]
    text: Mapped[str]
    tokens: Mapped[int]
    prompt_tokens: Mapped[int | None]
    finished: Mapped[bool]
    reward: Mapped[float | None]
    reward_z: Mapped[float | None]
    first_token_seconds: Mapped[float | None]
    seconds: Mapped[float | None]
    error: Mapped[Json | None]
    reused: Mapped[bool]
    started_at: Mapped[Timestamp | None]
    ended_at: Mapped[Timestamp | None]


class Curve(Base):
    """Requested scores against achieved rewards over `prompts`, which are drawn when it is asked for. `points` grow
    one by one, in the order of `scores`."""

    __tablename__ = "playground_curves"
    __table_args__ = (
        CheckConstraint(f"state IN ({_STATES_SQL})", name="state"),
        Index("ix_playground_curves_project_id_model_id", "project_id", "model_id", "id"),
        Index("ix_playground_curves_open", "id", postgresql_where=_OPEN),
    )

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    # No foreign keys: a curve still names what it was measured on when that has been deleted.
    model_id: Mapped[uuid.UUID]
    model_name: Mapped[str]
    reward_model_id: Mapped[uuid.UUID]
    reward_model_name: Mapped[str]
    dataset_id: Mapped[uuid.UUID]
    dataset_name: Mapped[str]
    split: Mapped[str]
    # Each as `ConditionType` has it.
    scores: Mapped[list[float | str]] = mapped_column(JSONB)
    prompt_limit: Mapped[int]
    # Up to hundreds of conversations: lists of curves leave them in the database.
    prompts: Mapped[list[Any]] = mapped_column(JSONB, deferred=True)
    decoding: Mapped[Json]
    seed: Mapped[BigInt]
    state: Mapped[str]
    waits_for: Mapped[str | None]
    done: Mapped[int]
    total: Mapped[int]
    points: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    spearman: Mapped[float | None]
    error: Mapped[Json | None]
    created_by: Mapped[str]
    created_at: Mapped[CreatedAt]
    attempt: Mapped[int]
    lease_owner: Mapped[str | None]
    lease_expires_at: Mapped[Timestamp | None]
    ended_at: Mapped[Timestamp | None]
