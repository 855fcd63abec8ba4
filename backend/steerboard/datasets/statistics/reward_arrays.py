"""One source's rewards of a whole dataset as sorted arrays: thresholds, quantiles and histograms of any width.

They are stored when the rewards are, 12 bytes a row, and read back at once; a million rewards take some ten
milliseconds the first time and none after that.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import delete, select, text
from sqlalchemy.orm import Session

from steerboard.datasets.array_cache import ARRAYS
from steerboard.datasets.derived_tables import DatasetStatistics, RewardStatistics
from steerboard.datasets.rows.row_writer import raw_connection
from steerboard.datasets.schemas import Bin, RewardFigures
from steerboard.platform.database import new_id

Floats: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = NDArray[np.uint32]

STORED_BINS = 40
_LENGTH_BINS = 20


@dataclass(frozen=True)
class RewardArrays:
    """`values`: by row, NaN where there is none. `ranking`: rows from the lowest reward, ties by row.
    `ordered`: the rewards of `ranking`."""

    values: Floats
    ranking: Rows
    ordered: Floats

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + self.ranking.nbytes + self.ordered.nbytes


def ranked(values: Floats) -> RewardArrays:
    """Sorted, stable; what is not finite has no place in the ranking."""
    rows = np.flatnonzero(np.isfinite(values))
    ranking = rows[np.argsort(values[rows], kind="stable")].astype(np.uint32)
    return RewardArrays(values, ranking, values[ranking])


def figures(ordered: Floats, mean: float, sd: float) -> RewardFigures:
    """`ordered` ascends. Percentiles are linear between the two nearest rewards."""
    p20, p50, p80 = (float(quantile) for quantile in np.quantile(ordered, (0.2, 0.5, 0.8)))
    low, high = float(ordered[0]), float(ordered[-1])
    return RewardFigures(n=len(ordered), mean=mean, sd=sd, p20=p20, p50=p50, p80=p80, low=low, high=high)


def moments(values: Floats) -> tuple[float, float]:
    """Mean and standard deviation over all values, in units of the largest deviation so that no square overflows."""
    mean = math.fsum(values.tolist()) / len(values)
    away = values - mean
    largest = float(np.abs(away).max())
    return mean, largest * math.sqrt(float(np.mean((away / largest) ** 2))) if largest else 0.0


def binned(ordered: Floats, low: float, high: float, bins: int) -> list[Bin]:
    """Ascending values counted in `bins` equal bins from `low` to `high`, which is in the last; one bin where all are
    equal."""
    if low == high:
        return [Bin(low=low, high=high, count=len(ordered))]
    edges = [low + (high - low) * (place / bins) for place in range(bins)] + [high]
    places = [0, *np.searchsorted(ordered, edges[1:-1], side="left").tolist(), len(ordered)]
    return [Bin(low=edges[i], high=edges[i + 1], count=places[i + 1] - places[i]) for i in range(bins)]


def save_rewards(
    session: Session, owner: uuid.UUID, source_id: uuid.UUID, values: Sequence[float] | Floats
) -> RewardStatistics | None:
    """Store the arrays and figures of rewards by row, instead of earlier ones. None when no reward is finite."""
    arrays = ranked(np.asarray(values, np.float64))
    forget_rewards(session, owner, source_id)
    if not len(arrays.ordered):
        return None
    mean, sd = moments(arrays.values[np.sort(arrays.ranking)])
    shown = figures(arrays.ordered, mean, sd)
    made = RewardStatistics(
        dataset_id=owner,
        reward_source_id=source_id,
        version=new_id(),
        figures=shown.model_dump(),
        bins=[bin_.model_dump() for bin_ in binned(arrays.ordered, shown.low, shown.high, STORED_BINS)],
        by_length=_by_length(session, owner, arrays),
        values=arrays.values.astype("<f8").tobytes(),
        ranking=arrays.ranking.astype("<u4").tobytes(),
    )
    session.add(made)
    session.flush()
    return made


def forget_rewards(session: Session, owner: uuid.UUID, source_id: uuid.UUID) -> None:
    """Called before other rewards of the same source take their place."""
    session.execute(
        delete(RewardStatistics).where(
            RewardStatistics.dataset_id == owner, RewardStatistics.reward_source_id == source_id
        )
    )


def recorded_values(session: Session, owner: uuid.UUID, source_id: uuid.UUID, rows: int) -> Floats:
    """The rewards in the table, by row; NaN where there is none."""
    packed = session.scalar(
        text(
            "SELECT string_agg(int4send(row) || float8send(value), ''::bytea) FROM rewards"
            " WHERE dataset_id = :owner AND reward_source_id = :source"
        ),
        {"owner": owner, "source": source_id},
    )
    values = np.full(rows, np.nan)
    if packed is not None:
        graded = np.frombuffer(packed, np.dtype([("row", ">i4"), ("value", ">f8")]))
        values[graded["row"]] = graded["value"]
    return values


def load_arrays(session: Session, stored: RewardStatistics) -> RewardArrays:
    """The arrays of stored rewards, from this process's memory where they are."""

    def load() -> RewardArrays:
        packed = raw_connection(session).execute(
            "SELECT values, ranking FROM reward_statistics WHERE version = %s AND dataset_id = %s",
            [stored.version, stored.dataset_id],
            binary=True,  # as text it is twice as long, and slow to read
        )
        row = packed.fetchone()
        assert row is not None
        values, ranking = np.frombuffer(row[0], "<f8"), np.frombuffer(row[1], "<u4")
        return RewardArrays(values, ranking, values[ranking])

    return ARRAYS.get(("rewards", stored.version), load)


def _by_length(session: Session, owner: uuid.UUID, arrays: RewardArrays) -> list[dict[str, Any]] | None:
    """How rewards go with the length of the response, in bins of about as many rows each; null without responses."""
    packed = session.scalar(select(DatasetStatistics.response_lengths).where(DatasetStatistics.dataset_id == owner))
    if packed is None:
        return None
    graded = np.sort(arrays.ranking)
    lengths = np.frombuffer(packed, "<u4")[graded]
    order = np.argsort(lengths, kind="stable")
    lengths, values = lengths[order], arrays.values[graded][order]
    # Equal lengths share a bin.
    edges = np.unique(lengths[[len(lengths) * place // _LENGTH_BINS for place in range(_LENGTH_BINS)]])
    places = [*np.searchsorted(lengths, edges).tolist(), len(lengths)]
    bins = []
    for place, (start, end) in enumerate(pairwise(places)):
        part = values[start:end]
        p20, p80 = (float(quantile) for quantile in np.quantile(part, (0.2, 0.8)))
        high = int(edges[place + 1]) if place + 1 < len(edges) else int(lengths[-1])
        figures_of = {"n": end - start, "mean": float(part.mean()), "p20": p20, "p80": p80}
        bins.append({"low": int(edges[place]), "high": high, **figures_of})
    return bins
