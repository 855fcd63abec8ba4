"""Reward sources that add up others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.errors import NameTaken, RewardsMismatch
from steerboard.datasets.hooks import model_hash
from steerboard.datasets.lookup import owner_of
from steerboard.datasets.rewards.service import get_source, store_rewards, too_large
from steerboard.datasets.statistics.reward_arrays import recorded_values
from steerboard.datasets.tables import Dataset, RewardSource
from steerboard.platform.database import new_id
from steerboard.platform.names import check_name
from steerboard_contracts.errors import BadInput
from steerboard_contracts.prompts import Normaliser, RewardPart
from steerboard_contracts.samples import LARGEST_REWARD

Floats = NDArray[np.float64]


def add_weighted(
    session: Session,
    project: Project,
    dataset: Dataset,
    name: str,
    weights: Mapping[str, float],
    scale: Literal["zscore", "raw"] = "zscore",
) -> RewardSource:
    """A new source whose rewards are the sum of weight times those of others that graded every row of the dataset, as
    z-scores over it unless `raw`.

    Raises `RewardsMismatch`, `NameTaken`, and `BadInput` (`bad_weights`, `degenerate_rewards`, `reward_too_large`).
    """
    if not all(math.isfinite(weight) for weight in weights.values()):
        raise BadInput("a weight is not a finite number", code="bad_weights")
    if _taken(session, project, name):
        raise NameTaken(f"there is already a reward source {name!r}")
    sources = {ref: get_source(session, project, ref) for ref in weights}
    total = np.zeros(dataset.rows)
    parts: list[RewardPart] = []
    with np.errstate(over="ignore", invalid="ignore"):
        for ref, source in sources.items():
            values = _complete(session, dataset, source, ref)
            if scale == "zscore":
                known = model_hash(session, source.model_id) if source.model_id else None
                normaliser = Normaliser.fit(values.tolist(), source.name, known)
                values = (values - normaliser.mean) / normaliser.sd
                parts.append(normaliser.part(weights[ref]))
            total += weights[ref] * values
    if not float(np.abs(total).max()) <= LARGEST_REWARD:
        raise too_large("a weighted sum")
    made = _new_source(session, project, name, {str(source.id): weights[ref] for ref, source in sources.items()}, parts)
    store_rewards(session, dataset, made, ((row + 1, row, float(value)) for row, value in enumerate(total)))
    return made


def combined_source(
    session: Session, project: Project, name: str, datasets: Sequence[Dataset], weights: Sequence[float]
) -> RewardSource:
    """The source of what a combine run makes of labelled datasets, by the normalisers that they pin."""
    if _taken(session, project, name):
        name = f"{name[:119]}-{new_id().hex[-8:]}"
    added: dict[str, float] = {}
    parts = []
    for dataset, weight in zip(datasets, weights, strict=True):
        source = str(dataset.reward_source_id)
        added[source] = added.get(source, 0.0) + weight
        parts.append(Normaliser.model_validate(dataset.normaliser).part(weight))
    return _new_source(session, project, name, added, parts)


def _new_source(
    session: Session, project: Project, name: str, weights: dict[str, float], parts: Sequence[RewardPart]
) -> RewardSource:
    source = RewardSource(
        project_id=project.id,
        name=check_name(name),
        kind="weighted",
        model_id=None,
        weights=weights,
        parts=[part.model_dump() for part in parts] or None,
    )
    session.add(source)
    session.flush()
    return source


def _complete(session: Session, dataset: Dataset, source: RewardSource, ref: str) -> Floats:
    values = recorded_values(session, owner_of(dataset), source.id, dataset.rows)
    graded = int(np.isfinite(values).sum())
    if graded != dataset.rows:
        raise RewardsMismatch(f"{ref!r} has graded {graded:,} of {dataset.rows:,} rows")
    return values


def _taken(session: Session, project: Project, name: str) -> bool:
    query = exists().where(RewardSource.project_id == project.id, RewardSource.name == name)
    return bool(session.scalar(select(query)))
