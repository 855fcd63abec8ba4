"""Figures of a dataset: made with its rows, or once from the tables for datasets from before they were."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from sqlalchemy import Select, exists, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from steerboard.datasets.array_cache import ARRAYS
from steerboard.datasets.derived_tables import DatasetStatistics, RewardStatistics
from steerboard.datasets.rows.exporting import stored_rows
from steerboard.datasets.rows.row_statistics import RowFigures
from steerboard.datasets.statistics.reward_arrays import RewardArrays, load_arrays, recorded_values, save_rewards
from steerboard.datasets.tables import Dataset, Reward, RewardSource
from steerboard.platform.http.errors import NotFound


def save_statistics(session: Session, dataset: Dataset, figures: RowFigures) -> DatasetStatistics:
    """Store what was gathered while the rows were written."""
    made = DatasetStatistics(
        dataset_id=dataset.id,
        figures=figures.summary(),
        held_out=figures.held_out,
        response_lengths=figures.response_lengths,
        source_names=list(figures.source_names) if figures.source_names else None,
        source_codes=figures.source_codes,
    )
    session.add(made)
    session.flush()
    return made


def statistics_of(session: Session, dataset: Dataset) -> DatasetStatistics:
    """The statistics of the dataset whose rows this one shows. Made and stored when they are not there yet."""
    owner = dataset.base_dataset_id or dataset.id
    statistics = session.get(DatasetStatistics, owner)
    if statistics is not None:
        return statistics
    base = _locked(session, owner)
    statistics = session.get(DatasetStatistics, owner, populate_existing=True)
    if statistics is not None:  # someone else has made them meanwhile
        return statistics
    figures = RowFigures()
    for row in stored_rows(session, base):
        identity = row.sample if row.reward is None else f"{row.sample}{row.reward!r}"
        figures.add(orjson.loads(row.sample), row.prompt_hash, row.held_out, identity.encode())
    return save_statistics(session, base, figures)


def _locked(session: Session, owner: uuid.UUID) -> Dataset:
    """Keeps others from the same work; rows that refer to the dataset may still be written."""
    return session.scalars(
        select(Dataset)
        .where(Dataset.id == owner)
        .with_for_update(key_share=True)
        .execution_options(populate_existing=True)
    ).one()


def reward_statistics(session: Session, dataset: Dataset, source: RewardSource) -> RewardStatistics:
    """Statistics of one source's rewards of these rows. Raises `NotFound` when it graded none of them."""
    owner = dataset.base_dataset_id or dataset.id
    query = select(RewardStatistics).where(
        RewardStatistics.dataset_id == owner, RewardStatistics.reward_source_id == source.id
    )
    statistics = session.scalar(query)
    if statistics is None and _has_graded(session, owner, source.id):
        statistics_of(session, dataset)  # for the lengths of the responses
        _locked(session, owner)
        values = recorded_values(session, owner, source.id, dataset.rows)
        statistics = session.scalar(query) or save_rewards(session, owner, source.id, values)
    if statistics is None:
        raise NotFound(
            f"{source.name!r} has graded no row of {dataset.name!r}", hint="List them: GET datasets/{dataset}/rewards."
        )
    return statistics


def _has_graded(session: Session, owner: uuid.UUID, source_id: uuid.UUID) -> bool:
    return session.scalar(_first_reward(owner, source_id)) is not None


def _first_reward(owner: uuid.UUID, source_id: uuid.UUID | InstrumentedAttribute[uuid.UUID]) -> Select[int]:
    """Ordered, so that it is one look into the primary key and never a walk over the rewards of others."""
    return (
        select(Reward.row)
        .where(Reward.dataset_id == owner, Reward.reward_source_id == source_id)
        .order_by(Reward.row)
        .limit(1)
    )


def reward_arrays(session: Session, dataset: Dataset, source: RewardSource) -> RewardArrays:
    """All rewards of one source, sorted. Raises `NotFound` when it graded none of the rows."""
    return load_arrays(session, reward_statistics(session, dataset, source))


def graded_by(session: Session, dataset: Dataset) -> list[tuple[RewardSource, RewardStatistics]]:
    """Every source that graded rows of this dataset, with its figures; oldest first."""
    owner = dataset.base_dataset_id or dataset.id
    graded = _first_reward(owner, RewardSource.id).scalar_subquery()
    sources = session.scalars(
        select(RewardSource)
        .where(RewardSource.project_id == dataset.project_id, graded.is_not(None))
        .order_by(RewardSource.id)
    )
    known = session.scalars(select(RewardStatistics).where(RewardStatistics.dataset_id == owner))
    stored = {statistics.reward_source_id: statistics for statistics in known}
    return [(source, stored.get(source.id) or reward_statistics(session, dataset, source)) for source in sources.all()]


class ByteArray:
    """An array with what names it, for the cache."""

    def __init__(self, array: NDArray[Any], names: dict[str, int] | None = None) -> None:
        self.array = array
        self.names = names or {}

    @property
    def nbytes(self) -> int:
        return self.array.nbytes + 100 * len(self.names)


def held_out_rows(session: Session, dataset: Dataset) -> NDArray[np.bool_]:
    """Whether each row is held out."""
    stored = statistics_of(session, dataset)

    def load() -> ByteArray:
        bits = np.unpackbits(np.frombuffer(stored.held_out, np.uint8), count=dataset.rows)
        return ByteArray(bits.astype(np.bool_))

    return ARRAYS.get(("held_out", stored.dataset_id), load).array


def source_places(session: Session, dataset: Dataset) -> ByteArray | None:
    """uint16 by row, a place in `names`. None when rows have no source, or too many."""
    stored = statistics_of(session, dataset)

    def load() -> ByteArray:
        codes = np.frombuffer(stored.source_codes or b"", "<u2")
        return ByteArray(codes, {name: place for place, name in enumerate(stored.source_names or [])})

    places = ARRAYS.get(("sources", stored.dataset_id), load)
    return places if len(places.array) else None


def make_next(session: Session) -> bool:
    """Make the figures of one dataset that has none, unless another process is at it. Returns whether it did."""
    base = aliased(Dataset)
    missing = ~exists().where(DatasetStatistics.dataset_id == base.id)
    dataset = session.scalar(
        select(base)
        .where(base.base_dataset_id.is_(None), missing)
        .order_by(base.id)
        .limit(1)
        .with_for_update(key_share=True, skip_locked=True)
    )
    if dataset is None:
        return False
    statistics_of(session, dataset)
    graded_by(session, dataset)
    return True
