"""Arenas: people ask, two policies answer without their names, and a vote decides which answer is better."""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, BigInt, CreatedAt, Id

VERDICTS = ("a", "b", "tie", "both_bad")


def random_id() -> uuid.UUID:
    """Reveals nothing, not even an order."""
    return uuid.uuid4()


class Arena(Base):
    """`entrants`: [{name, model or endpoint (an id), score, decoding}]; a battle names two of them by their place.

    `seed` decides pairs and sides, and never leaves the server: with it and the votes so far they could be computed.
    """

    __tablename__ = "arenas"
    __table_args__ = (
        CheckConstraint("state IN ('open', 'closed')", name="state"),
        UniqueConstraint("project_id", "name"),
    )

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    name: Mapped[str]
    entrants: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    categories: Mapped[list[str]] = mapped_column(JSONB)
    seed: Mapped[BigInt]
    state: Mapped[str]
    created_by: Mapped[str]
    created_at: Mapped[CreatedAt]


class Battle(Base):
    """One person's conversation with two entrants: `a` and `b` are their places in the arena, in the order shown.

    `number` counts the arena's battles from 0. Lock a battle's row before adding a turn or a vote.
    """

    __tablename__ = "arena_battles"
    __table_args__ = (
        UniqueConstraint("arena_id", "number"),
        CheckConstraint("a <> b", name="two_entrants"),
        Index("ix_arena_battles_user_id_created_at", "user_id", "created_at"),
    )

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True, default=random_id)
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"), index=True)
    arena_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("arenas.id", ondelete="CASCADE"))
    user_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("users.id"))
    number: Mapped[int]
    a: Mapped[int]
    b: Mapped[int]
    seed: Mapped[BigInt]
    category: Mapped[str | None]
    created_at: Mapped[CreatedAt]


class Turn(Base):
    """`place` from 0. The comparison's column 0 is A's answer, its column 1 B's."""

    __tablename__ = "arena_turns"
    __table_args__ = (UniqueConstraint("comparison_id"),)

    battle_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("arena_battles.id", ondelete="CASCADE"), primary_key=True)
    place: Mapped[int] = mapped_column(primary_key=True)
    prompt: Mapped[str]
    comparison_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("playground_comparisons.id"))
    created_at: Mapped[CreatedAt]


class Vote(Base):
    """One a battle. `submission` is the voter's own id of it. `conversations`: what was voted on, A's and then B's,
    each [{role, content}]. `prompt_hash`: of what the person asked; `pair`: the lower place and the higher one.

    `counts`: of votes of one person on one pair for one prompt only the first does.
    """

    __tablename__ = "arena_votes"
    __table_args__ = (
        CheckConstraint("verdict IN ('a', 'b', 'tie', 'both_bad')", name="verdict"),
        Index(
            "uq_arena_votes_counts",
            "arena_id",
            "user_id",
            "pair",
            "prompt_hash",
            unique=True,
            postgresql_where=text("counts"),
        ),
        Index("ix_arena_votes_user_id_created_at", "user_id", "created_at"),
    )

    battle_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("arena_battles.id", ondelete="CASCADE"), primary_key=True)
    arena_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("arenas.id", ondelete="CASCADE"))
    user_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("users.id"))
    submission: Mapped[str]
    verdict: Mapped[str]
    category: Mapped[str | None]
    pair: Mapped[str]
    prompt_hash: Mapped[str]
    counts: Mapped[bool]
    conversations: Mapped[list[list[dict[str, str]]]] = mapped_column(JSONB)
    created_at: Mapped[CreatedAt]
