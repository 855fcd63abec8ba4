"""How rewards are spread over a dataset, from the sorted rewards stored with them."""

from __future__ import annotations

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.rewards.service import get_source
from steerboard.datasets.schemas import RewardHistogram
from steerboard.datasets.statistics.reward_arrays import STORED_BINS, binned
from steerboard.datasets.statistics.service import reward_arrays, reward_statistics
from steerboard.datasets.tables import Dataset, RewardSource

PINNED = "pinned"


def source_of(session: Session, project: Project, dataset: Dataset, ref: str) -> RewardSource:
    """The source by id or name; `pinned` is the source that a labelled dataset pins. Raises `NotFound`."""
    if ref == PINNED and dataset.reward_source_id is not None:
        return session.get_one(RewardSource, dataset.reward_source_id)
    return get_source(session, project, ref)


def histogram(session: Session, dataset: Dataset, source: RewardSource, bins: int) -> RewardHistogram:
    """Raw rewards of all rows in `bins` equal bins. Raises `NotFound` when the source graded none of them."""
    stored = reward_statistics(session, dataset, source)
    shown = stored.bins
    if bins != STORED_BINS:
        ordered = reward_arrays(session, dataset, source).ordered
        made = binned(ordered, stored.figures["low"], stored.figures["high"], bins)
        shown = [bin_.model_dump() for bin_ in made]
    return RewardHistogram.model_validate({"source": source.name, **stored.figures, "bins": shown})
