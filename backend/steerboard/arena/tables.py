"""Arenas: people ask, policies answer side by side without their names, and a vote decides which answer is best."""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, Integer, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, BigInt, CreatedAt, Id


def random_id() -> uuid.UUID:
    """Reveals nothing, not even an order."""
    return uuid.uuid4()


class Arena(Base):
    """`entrants`: [{name, model or endpoint (an id), score, decoding}]; a battle names `sides` of them by their place,
    or fewer where others were deleted.

    `seed` is drawn by the server and, with its secret key, decides who meets and on which side (`arena.pairing`).
    """

    __tablename__ = "arenas"
    __table_args__ = (
        CheckConstraint("state IN ('open', 'closed')", name="state"),
        CheckConstraint("sides IN (2, 3, 4)", name="sides"),
        UniqueConstraint("project_id", "name"),
    )

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    name: Mapped[str]
    entrants: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    sides: Mapped[int]
    categories: Mapped[list[str]] = mapped_column(JSONB)
    seed: Mapped[BigInt]
    state: Mapped[str]
    created_by: Mapped[str]
    created_at: Mapped[CreatedAt]


class Battle(Base):
    """One person's conversation with two or more entrants: `entrants` are their places in the arena, in the order
    shown.

    `number` counts the arena's battles from 0. Lock a battle's row before adding a turn or a vote.
    """

    __tablename__ = "arena_battles"
    __table_args__ = (
        UniqueConstraint("arena_id", "number"),
        CheckConstraint("cardinality(entrants) BETWEEN 2 AND 4", name="sides"),
        Index("ix_arena_battles_user_id_created_at", "user_id", "created_at"),
    )

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True, default=random_id)
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"), index=True)
    arena_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("arenas.id", ondelete="CASCADE"))
    user_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("users.id"))
    number: Mapped[int]
    entrants: Mapped[list[int]] = mapped_column(ARRAY(Integer))
    seed: Mapped[BigInt]
    category: Mapped[str | None]
    created_at: Mapped[CreatedAt]


class Turn(Base):
    """`place` from 0. The comparison's columns are the answers of the battle's entrants, in their order."""

    __tablename__ = "arena_turns"
    __table_args__ = (UniqueConstraint("comparison_id"),)

    battle_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("arena_battles.id", ondelete="CASCADE"), primary_key=True)
    place: Mapped[int] = mapped_column(primary_key=True)
    prompt: Mapped[str]
    comparison_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("playground_comparisons.id"))
    created_at: Mapped[CreatedAt]


class Vote(Base):
    """One a battle. `submission` is the voter's own id of it. `conversations`: what was voted on, in the order shown,
    each [{role, content}]. `prompt_hash`: of what the person asked; `entrant_set`: the entrants' places in ascending
    order.

    `counts`: of votes of one person on one set of entrants for one prompt only the first does.
    """

    __tablename__ = "arena_votes"
    __table_args__ = (
        CheckConstraint("verdict IN ('a', 'b', 'c', 'd', 'tie', 'all_bad')", name="verdict"),
        Index(
            "uq_arena_votes_counts",
            "arena_id",
            "user_id",
            "entrant_set",
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
    entrant_set: Mapped[str]
    prompt_hash: Mapped[str]
    counts: Mapped[bool]
    conversations: Mapped[list[list[dict[str, str]]]] = mapped_column(JSONB)
    created_at: Mapped[CreatedAt]
