"""Held-out rows that people changed, of what an evaluation's figures are measured on."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.datasets.held_out_changes import changes_of
from steerboard.datasets.tables import Dataset
from steerboard.evaluation.tables import Evaluation
from steerboard_contracts.held_out_changes import HeldOutChange, merged


def changes_of_prompts(session: Session, evaluation: Evaluation) -> list[HeldOutChange]:
    """Prompts are chosen without their labels, so a flip changes none; an edit may."""
    origin = evaluation.prompts_from
    if "dataset_id" not in origin or origin.get("split") == "train":
        return []
    dataset = session.get(Dataset, uuid.UUID(origin["dataset_id"]))
    return [change for change in changes_of(dataset) if change.dropped or change.edited] if dataset is not None else []


def changes_of_pairs(session: Session, project_id: uuid.UUID, datasets: Iterable[str]) -> list[HeldOutChange]:
    """The held-out changes of the datasets with these names."""
    named = select(Dataset).where(Dataset.project_id == project_id, Dataset.name.in_(set(datasets)))
    return merged(*map(changes_of, session.scalars(named.order_by(Dataset.id))))
