"""What the list of runs is searched, filtered and sorted by. All of it follows from other tables."""

from __future__ import annotations

import uuid
from typing import Literal

from sqlalchemy import ForeignKey, Index, text
from sqlalchemy.dialects.postgresql import TSVECTOR
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base

Source = Literal["setting", "metric", "result"]


def _by(column: str) -> Index:
    """One that a list sorted by this value is read from, and from which names are looked up."""
    return Index(
        f"ix_run_facts_{column}",
        *("project_id", "source", "key", column, "run_id"),
        postgresql_where=text(f"{column} IS NOT NULL"),
    )


class RunFact(Base):
    """One setting, metric or result of a run, shards apart. Of a metric `number` is the value at its greatest step,
    `low` and `high` are its extremes. Exactly one of `number` and `word` is there."""

    __tablename__ = "run_facts"
    __table_args__ = (_by("number"), _by("word"), _by("low"), _by("high"))

    run_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    source: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    number: Mapped[float | None]
    word: Mapped[str | None]
    low: Mapped[float | None]
    high: Mapped[float | None]
    step: Mapped[int | None]


class RunWords(Base):
    """The words of a run's name, settings, tags and notes."""

    __tablename__ = "run_words"
    __table_args__ = (Index("ix_run_words_words", "words", postgresql_using="gin"),)

    run_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True)
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    words: Mapped[str] = mapped_column(TSVECTOR)
