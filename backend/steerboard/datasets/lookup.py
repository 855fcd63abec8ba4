"""Datasets by name or id: finding, announcing, deleting."""

from __future__ import annotations

import uuid

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.derived_tables import DatasetStatistics, RewardStatistics
from steerboard.datasets.errors import InUse, NameTaken
from steerboard.datasets.hooks import stage_output, used_by_run
from steerboard.datasets.search.indexing import delete_segments
from steerboard.datasets.tables import Dataset, DroppedRowRecord, Reward, RewardSource, SampleRow
from steerboard.platform.events.log import emit
from steerboard.platform.http.errors import NotFound
from steerboard.platform.names import MOST_SUGGESTED, check_name, find


def get_dataset(session: Session, project: Project, ref: str | uuid.UUID) -> Dataset:
    """The dataset by id, name, or `<pipeline>.<stage>`. Raises `NotFound`, also for another project's."""
    dataset = find(session, select(Dataset).where(Dataset.project_id == project.id), Dataset.id, Dataset.name, ref)
    if dataset is None and isinstance(ref, str):
        made = stage_output(session, project.id, ref, "dataset")
        dataset = session.get(Dataset, made) if made else None
    if dataset is None:
        raise NotFound(f"there is no dataset {str(ref)!r}", hint="List them with `steerboard datasets list`.")
    return dataset


def dataset_names(session: Session, project: Project) -> list[str]:
    """The newest names, for suggestions."""
    names = select(Dataset.name).where(Dataset.project_id == project.id)
    return list(session.scalars(names.order_by(Dataset.id.desc()).limit(MOST_SUGGESTED)))


def check_free_name(session: Session, project: Project, name: str) -> str:
    """The name itself. Raises `BadInput` (`invalid_name`) or `NameTaken`."""
    check_name(name)
    if session.scalar(select(Dataset.id).where(Dataset.project_id == project.id, Dataset.name == name)):
        raise NameTaken(f"there is already a dataset {name!r}", hint="Choose another name, or delete that one.")
    return name


def announce(session: Session, dataset: Dataset) -> None:
    """Tell the project's event stream. Late in a transaction: it locks the stream until the commit."""
    session.flush()
    payload = {"id": str(dataset.id), "name": dataset.name, "kind": dataset.kind, "rows": dataset.rows}
    emit(session, dataset.project_id, "dataset.created", payload)


def delete_dataset(session: Session, dataset: Dataset) -> None:
    """Remove a dataset with its rows and rewards. Raises `InUse` when a run or another dataset refers to it."""
    below = (Dataset.base_dataset_id == dataset.id) | (Dataset.parent_id == dataset.id)
    child = session.scalar(select(Dataset.name).where(below).limit(1))
    if child is not None:
        raise InUse(f"dataset {child!r} is built on {dataset.name!r}", hint="Delete that one first.")
    if used_by_run(session, "dataset", dataset.id):
        raise InUse(
            f"a run used or made {dataset.name!r}",
            hint="Datasets that others were made from are kept, so lineage stays complete.",
        )
    source_id = dataset.reward_source_id
    delete_segments(session, dataset.id)
    for statistics in (DatasetStatistics, RewardStatistics):
        session.execute(delete(statistics).where(statistics.dataset_id == dataset.id))
    session.execute(delete(Reward).where(Reward.dataset_id == dataset.id))
    session.execute(delete(SampleRow).where(SampleRow.dataset_id == dataset.id))
    session.execute(delete(DroppedRowRecord).where(DroppedRowRecord.dataset_id == dataset.id))
    session.execute(delete(Dataset).where(Dataset.id == dataset.id))
    if source_id:
        _delete_unused_import(session, source_id)


def _delete_unused_import(session: Session, source_id: uuid.UUID) -> None:
    session.execute(
        delete(RewardSource).where(
            RewardSource.id == source_id,
            RewardSource.kind == "imported",
            ~select(Reward.row).where(Reward.reward_source_id == source_id).exists(),
            ~select(Dataset.id).where(Dataset.reward_source_id == source_id).exists(),
        )
    )


def owner_of(dataset: Dataset) -> uuid.UUID:
    """The dataset whose rows this one shows, and to which rewards belong."""
    return dataset.base_dataset_id or dataset.id
