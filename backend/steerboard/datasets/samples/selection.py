"""Which samples a table shows: filters, order, one page of it, and how many there are.

Every filter is a mask over the rows, so that rare and common words, narrow and wide ranges cost the same few
milliseconds over a million rows, alone or together, and a count is exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.lookup import owner_of
from steerboard.datasets.review.marks import marked_rows
from steerboard.datasets.review.schemas import Marked
from steerboard.datasets.rewards.histograms import PINNED, source_of
from steerboard.datasets.rows.row_statistics import NO_SOURCE
from steerboard.datasets.samples.reading import samples_in_order
from steerboard.datasets.schemas import Match
from steerboard.datasets.search.parts import find_part
from steerboard.datasets.search.query import Holds, find
from steerboard.datasets.statistics.reward_arrays import RewardArrays
from steerboard.datasets.statistics.service import held_out_rows, reward_arrays, source_places
from steerboard.datasets.tables import SAMPLE_GROUP, Dataset, SampleRow
from steerboard.platform.row_sizes import PAGE_BYTES, weight
from steerboard_contracts.errors import BadInput

Mask = NDArray[np.bool_]
Places = NDArray[np.int64]
Order = Literal["row", "reward_asc", "reward_desc"]

# A quoted phrase, or a part of a text, is looked for in the samples themselves, so many of them a request.
_READ_FOR_PHRASES = 500
_READ_AT_ONCE = 250
_PLACES_AT_ONCE = 65_536
_NONE: Places = np.empty(0, np.int64)


@dataclass(frozen=True)
class SampleFilters:
    """`reward_min` and `reward_max` are raw rewards, both included; `reward_source` is the pinned one when absent."""

    q: str | None = None
    source: str | None = None
    reward_min: float | None = None
    reward_max: float | None = None
    reward_source: str | None = None
    split: Literal["train", "held_out"] | None = None
    from_row: int = 0
    group: int | None = None
    marked: Marked | None = None
    match: Match = "words"

    @property
    def by_reward(self) -> bool:
        return self.reward_min is not None or self.reward_max is not None


@dataclass(frozen=True)
class Selection:
    """`mask`: by row, whether the filters may let it through; `holds`: whether a sample of these is a hit.
    `rewards` are those of the source that was named or ordered by, or of the pinned one."""

    mask: Mask
    holds: Holds | None
    rewards: RewardArrays | None


@dataclass(frozen=True)
class SelectedPage:
    """`after` is the place after which the next page begins, None on the last one."""

    samples: list[SampleRow]
    after: int | None


def select_rows(
    session: Session, project: Project, dataset: Dataset, filters: SampleFilters, order: Order = "row"
) -> Selection:
    """Raises `NotFound` for an unknown reward source, `BadInput` (`no_rewards`) when one is needed and none is named or
    pinned, and `SearchNotReady`."""
    mask = np.ones(dataset.rows, np.bool_)
    rewards = None
    if filters.by_reward or filters.reward_source or order != "row":
        rewards = _rewards(session, project, dataset, filters.reward_source)
    if filters.split:
        held_out = held_out_rows(session, dataset)
        mask &= held_out if filters.split == "held_out" else ~held_out
    if filters.source is not None:
        mask &= _from_source(session, dataset, filters.source)
    if filters.group is not None:
        mask &= _of_group(session, dataset, filters.group)
    if filters.marked is not None:
        noted = np.zeros(dataset.rows, np.bool_)
        noted[marked_rows(session, dataset, filters.marked)] = True
        mask &= noted
    if rewards is not None and filters.by_reward:
        # A row without a reward is NaN, which no bound lets through.
        if filters.reward_min is not None:
            mask &= rewards.values >= filters.reward_min
        if filters.reward_max is not None:
            mask &= rewards.values <= filters.reward_max
    mask[: filters.from_row] = False
    if filters.q is None:
        return Selection(mask, None, rewards)
    look = find_part if filters.match == "part" else find
    hits = look(session, dataset, filters.q)
    return Selection(mask & hits.mask, hits.holds, rewards)


def _rewards(session: Session, project: Project, dataset: Dataset, name: str | None) -> RewardArrays:
    if name is None and dataset.reward_source_id is None:
        raise BadInput(
            f"{dataset.name!r} pins no rewards to sort or select by",
            code="no_rewards",
            hint="Name the source: reward_source=NAME.",
        )
    return reward_arrays(session, dataset, source_of(session, project, dataset, name or PINNED))


def _from_source(session: Session, dataset: Dataset, name: str) -> Mask:
    """Rows that a mixture took from one source. Labelled rows that name none count as `imported`."""
    unnamed = dataset.kind == "labelled" and name == "imported"
    places = source_places(session, dataset)
    if places is not None:
        named: Mask = places.array == places.names.get(name, -1)
        return named | (places.array == NO_SOURCE) if unnamed else named
    own = SampleRow.sample["source"].astext
    same = func.coalesce(own, "imported") == name if unnamed else own == name
    mask = np.zeros(dataset.rows, np.bool_)
    rows = session.scalars(select(SampleRow.row).where(SampleRow.dataset_id == owner_of(dataset), same))
    mask[list(rows)] = True
    return mask


def _of_group(session: Session, dataset: Dataset, group: int) -> Mask:
    """The responses to one prompt."""
    mask = np.zeros(dataset.rows, np.bool_)
    own = text(f"{SAMPLE_GROUP} = :group").bindparams(group=group)
    mask[list(session.scalars(select(SampleRow.row).where(SampleRow.dataset_id == owner_of(dataset), own)))] = True
    return mask


def select_page(
    session: Session, dataset: Dataset, selection: Selection, order: Order, after: int | None, limit: int
) -> SelectedPage:
    """The samples in their order after a place: a row number, or a rank by reward.

    A phrase or a part is looked for in at most 500 samples, and rows may be large; so a page may be short, or empty,
    and still not be the last.
    """
    start = min(max(-1 if after is None else after, -1) + 1, dataset.rows)
    kept: list[SampleRow] = []
    last = -1
    read = size = 0
    for block_places, block_rows in _candidates(
        selection, order, start, _READ_AT_ONCE if selection.holds else limit + 1
    ):
        with closing(samples_in_order(session, dataset, block_rows.tolist())) as samples:
            for place, sample in zip(block_places.tolist(), samples, strict=True):
                matches = selection.holds is None or selection.holds(sample.sample)
                if (matches and len(kept) == limit) or (read and size >= PAGE_BYTES):
                    return SelectedPage(kept, last)
                read += 1
                size += weight(sample)
                last = place
                if matches:
                    kept.append(sample)
        if selection.holds and read >= _READ_FOR_PHRASES:
            return SelectedPage(kept, last)
    return SelectedPage(kept, None)


def count_rows(session: Session, dataset: Dataset, selection: Selection) -> tuple[int, bool]:
    """How many rows there are, and whether that is exact: phrases and parts are looked for in the first rows only."""
    if selection.holds is None:
        return int(np.count_nonzero(selection.mask)), True
    _, looked = next(_candidates(selection, "row", 0, _READ_FOR_PHRASES), (_NONE, _NONE))
    samples = samples_in_order(session, dataset, looked.tolist())
    hits = sum(map(selection.holds, (sample.sample for sample in samples)))
    return hits, len(looked) == np.count_nonzero(selection.mask)


def _candidates(selection: Selection, order: Order, start: int, size: int) -> Iterator[tuple[Places, Places]]:
    """(places, rows) in blocks of `size`, the last one smaller."""
    places = rows = _NONE
    for more_places, more_rows in _blocks(selection, order, start):
        places, rows = np.concatenate([places, more_places]), np.concatenate([rows, more_rows])
        while len(rows) >= size:
            yield places[:size], rows[:size]
            places, rows = places[size:], rows[size:]
    if len(rows):
        yield places, rows


def _blocks(selection: Selection, order: Order, start: int) -> Iterator[tuple[Places, Places]]:
    if order == "row":
        # A page is soon full where most rows match: their places are not looked for all over a large dataset.
        for begin in range(start, len(selection.mask), _PLACES_AT_ONCE):
            rows = np.flatnonzero(selection.mask[begin : begin + _PLACES_AT_ONCE]) + begin
            yield rows, rows
        return
    assert selection.rewards is not None
    ranking = selection.rewards.ranking[:: 1 if order == "reward_asc" else -1]
    for begin in range(start, len(ranking), _PLACES_AT_ONCE):
        block = ranking[begin : begin + _PLACES_AT_ONCE]
        hits = np.flatnonzero(selection.mask[block])
        yield hits + begin, block[hits].astype(np.int64)
