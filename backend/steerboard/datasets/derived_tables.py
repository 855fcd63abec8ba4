"""What is worked out once about immutable rows: figures, the order of rewards, the words of samples."""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Identity, Index, LargeBinary, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, Json

Bytes = LargeBinary


class DatasetStatistics(Base):
    """Statistics of a dataset with rows of its own. The arrays are by row: one bit (`held_out`), little-endian uint32
    characters (`response_lengths`, null without responses) and uint16 places in `source_names` (null without sources,
    or with more of them than fit)."""

    __tablename__ = "dataset_statistics"

    dataset_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("datasets.id"), primary_key=True)
    figures: Mapped[Json]
    held_out: Mapped[bytes] = mapped_column(Bytes, deferred=True)
    response_lengths: Mapped[bytes | None] = mapped_column(Bytes, deferred=True)
    source_names: Mapped[list[str] | None] = mapped_column(JSONB, deferred=True)
    source_codes: Mapped[bytes | None] = mapped_column(Bytes, deferred=True)


class RewardStatistics(Base):
    """Statistics of one source's rewards of one dataset with rows of its own.

    `values`: float64 by row, NaN where there is none. `ranking`: uint32 rows, lowest reward first, ties by row.
    Another recording of the same rewards has another `version`.
    """

    __tablename__ = "reward_statistics"

    dataset_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("datasets.id"), primary_key=True)
    reward_source_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("reward_sources.id"), primary_key=True)
    version: Mapped[uuid.UUID]
    figures: Mapped[Json]
    bins: Mapped[list[dict[str, Any]]] = mapped_column(JSONB)
    by_length: Mapped[list[dict[str, Any]] | None] = mapped_column(JSONB)
    values: Mapped[bytes] = mapped_column(Bytes, deferred=True)
    ranking: Mapped[bytes] = mapped_column(Bytes, deferred=True)


class SearchSegment(Base):
    """Neighbouring rows whose words are indexed in one transaction; `ready` when they are. `lexicon`: every word once,
    each with a line feed before and behind it, to find words by a part."""

    __tablename__ = "search_segments"
    __table_args__ = (
        Index("ix_search_segments_dataset_id_first_row", "dataset_id", "first_row", unique=True),
        Index("ix_search_segments_waiting", "id", postgresql_where=text("NOT ready")),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    dataset_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("datasets.id"))
    first_row: Mapped[int]
    rows: Mapped[int]
    ready: Mapped[bool]
    lexicon: Mapped[str | None] = mapped_column(deferred=True)


class SearchWord(Base):
    """The rows of a segment that hold a word: big-endian uint16, counted from the segment's first row.

    No foreign key: its check of every word would cost as much as the index; segments are deleted with their words.
    """

    __tablename__ = "search_words"

    segment_id: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    word: Mapped[str] = mapped_column(primary_key=True)
    rows: Mapped[bytes] = mapped_column(Bytes)
