"""How rewards are spread over a dataset. Counting and sorting are the database's work."""

from __future__ import annotations

import math
from typing import Any

from sqlalchemy import Select, SQLColumnExpression, func, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.rewards import get_source, owner_of
from steerboard.datasets.schemas import Bin, RewardHistogram
from steerboard.datasets.tables import Dataset, Reward, RewardSource
from steerboard.platform.errors import NotFound

PINNED = "pinned"


def source_of(session: Session, project: Project, dataset: Dataset, ref: str) -> RewardSource:
    """By id or name; `pinned` is the source that a labelled dataset pins. Raises `NotFound`."""
    if ref == PINNED and dataset.reward_source_id is not None:
        return session.get_one(RewardSource, dataset.reward_source_id)
    return get_source(session, project, ref)


def histogram(session: Session, dataset: Dataset, source: RewardSource, bins: int) -> RewardHistogram:
    """Raw rewards of all rows in `bins` equal bins. Raises `NotFound` when the source graded none of them."""
    value = Reward.value
    rewards = select(value).where(
        Reward.dataset_id == owner_of(dataset),
        Reward.reward_source_id == source.id,
        value > -math.inf,
        value < math.inf,  # NaN is more than infinity to Postgres
    )
    percentiles = func.percentile_cont([0.2, 0.5, 0.8]).within_group(value)
    asked = (func.count(), func.avg(value), func.stddev_pop(value), func.min(value), func.max(value), percentiles)
    n, mean, sd, low, high, at = session.execute(rewards.with_only_columns(*asked)).one()
    if n == 0:
        raise NotFound(
            f"{source.name!r} has graded no row of {dataset.name!r}", hint="List them: GET datasets/{dataset}/rewards."
        )
    return RewardHistogram(
        source=source.name,
        n=n,
        mean=mean,
        sd=sd,
        low=low,
        high=high,
        p20=at[0],
        p50=at[1],
        p80=at[2],
        bins=binned(session, rewards, value, n, low, high, bins),
    )


def binned(
    session: Session,
    rows: Select[*tuple[Any, ...]],
    value: SQLColumnExpression[float],
    n: int,
    low: float,
    high: float,
    bins: int,
) -> list[Bin]:
    """`n` rows counted in `bins` equal bins from `low` to `high`, which is in the last; one bin where all are equal."""
    if low == high:
        return [Bin(low=low, high=high, count=n)]
    # Kept within the bins, should a value that was worked out twice differ from an end in its last digit.
    bucket = func.greatest(1, func.least(func.width_bucket(value, low, high, bins), bins)).label("bucket")
    counts = {row[0]: row[1] for row in session.execute(rows.with_only_columns(bucket, func.count()).group_by(bucket))}
    edges = [low + (high - low) * (place / bins) for place in range(bins)] + [high]
    return [Bin(low=edges[place], high=edges[place + 1], count=counts.get(place + 1, 0)) for place in range(bins)]
