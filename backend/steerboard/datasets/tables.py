"""Datasets, their immutable rows, and the rewards that reward sources gave to rows."""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from steerboard.platform.database import Base, BigInt, CreatedAt, Id, Json
from steerboard.platform.searched_names import name_lower, search_index

# The group of several responses to one prompt; the index is on this very expression.
SAMPLE_GROUP = "((sample ->> 'group'::text)::bigint)"
_GROUPED = text(f"{SAMPLE_GROUP} IS NOT NULL")


class Dataset(Base):
    """An immutable, ordered list of samples. Visible only when complete.

    A `labelled` dataset that a scoring run made has no rows of its own: it reads those of `base_dataset_id`,
    joined with the rewards of `reward_source_id`, and pins their mean, sd and n in `normaliser`. `parent_id`: the
    dataset that this one was cleaned, converted or edited from. `bytes`: of its own rows; None until they are measured.
    """

    __tablename__ = "datasets"
    __table_args__ = (UniqueConstraint("project_id", "name"), search_index("datasets"))

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    name: Mapped[str]
    kind: Mapped[str]
    rows: Mapped[int]
    held_out_rows: Mapped[int]
    content_hash: Mapped[str]
    bytes: Mapped[BigInt | None]
    origin: Mapped[Json]
    base_dataset_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("datasets.id"))
    parent_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("datasets.id"), index=True)
    reward_source_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("reward_sources.id"))
    normaliser: Mapped[Json | None]
    run_id: Mapped[uuid.UUID | None] = mapped_column(index=True)
    created_at: Mapped[CreatedAt]
    name_lower: Mapped[str] = name_lower()


class SampleRow(Base):
    """`sample` holds the kind's fields, `extra` the file's other columns, which export gives back."""

    __tablename__ = "samples"
    __table_args__ = (
        Index("ix_samples_dataset_id_prompt_hash", "dataset_id", "prompt_hash"),
        Index("ix_samples_held_out", "dataset_id", "row", postgresql_where=text("held_out")),
        Index("ix_samples_group", "dataset_id", text(SAMPLE_GROUP), postgresql_where=_GROUPED),
    )

    dataset_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("datasets.id"), primary_key=True)
    row: Mapped[int] = mapped_column(primary_key=True)
    prompt_hash: Mapped[int] = mapped_column(BigInteger)
    held_out: Mapped[bool]
    sample: Mapped[Json]
    extra: Mapped[dict[str, Any] | None] = mapped_column(JSONB)


class DroppedRowRecord(Base):
    """A row that a cleaned or edited version of a dataset lacks. `row` and `of_row` are rows of its parent, which
    keeps their content. `detail`: the other fields of `cleaning.schemas.Dropped`."""

    __tablename__ = "dropped_rows"

    dataset_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("datasets.id"), primary_key=True)
    row: Mapped[int] = mapped_column(primary_key=True)
    rule: Mapped[str]
    of_row: Mapped[int | None]
    detail: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))


class RewardSource(Base):
    """Who gave rewards: a reward model (`model`), a weighted sum of sources (`weighted`), a file or a
    selection among answers (`imported`). `parts`: of a sum of z-scores, a `RewardPart` for each."""

    __tablename__ = "reward_sources"
    __table_args__ = (UniqueConstraint("project_id", "name"),)

    id: Mapped[Id]
    project_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("projects.id"))
    name: Mapped[str]
    kind: Mapped[str]
    model_id: Mapped[uuid.UUID | None] = mapped_column(ForeignKey("models.id"))
    weights: Mapped[Json | None]
    parts: Mapped[list[dict[str, Any]] | None] = mapped_column(JSONB(none_as_null=True))
    created_at: Mapped[CreatedAt]


class Reward(Base):
    """The raw value one reward source gave to one row."""

    __tablename__ = "rewards"

    dataset_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("datasets.id"), primary_key=True)
    reward_source_id: Mapped[uuid.UUID] = mapped_column(ForeignKey("reward_sources.id"), primary_key=True)
    row: Mapped[int] = mapped_column(primary_key=True)
    value: Mapped[float]
