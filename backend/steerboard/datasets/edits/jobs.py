"""New versions as the process of imports makes them (`hooks.import_request`) of a large dataset, since the API's other
requests would wait for Python's lock; of a small one, the API itself."""

from __future__ import annotations

from sqlalchemy.orm import Session

from steerboard.accounts.access import Access, audit
from steerboard.datasets.edits import service
from steerboard.datasets.edits.schemas import EditCreate
from steerboard.datasets.held_out_changes import changes_of
from steerboard.datasets.hooks import ToImport
from steerboard.datasets.lookup import get_dataset
from steerboard.datasets.queries import dataset_out
from steerboard.datasets.review.schemas import VersionCreate
from steerboard.datasets.schemas import DatasetOut
from steerboard.datasets.tables import Dataset


def edit(session: Session, access: Access, dataset: Dataset, given: EditCreate) -> DatasetOut:
    """Raises like `service.edit`."""
    return _noted(session, access, dataset, service.edit(session, access.project, dataset, given, access.actor))


def make_version(session: Session, access: Access, dataset: Dataset, given: VersionCreate) -> DatasetOut:
    """Raises like `service.version_of_changes`."""
    made = service.version_of_changes(session, access.project, dataset, given.name, access.actor)
    return _noted(session, access, dataset, made)


def requested_edit(session: Session, access: Access, given: ToImport) -> DatasetOut:
    dataset = get_dataset(session, access.project, given.into)
    return edit(session, access, dataset, EditCreate.model_validate(given.form))


def requested_version(session: Session, access: Access, given: ToImport) -> DatasetOut:
    dataset = get_dataset(session, access.project, given.into)
    return make_version(session, access, dataset, VersionCreate.model_validate(given.form))


def _noted(session: Session, access: Access, dataset: Dataset, made: Dataset) -> DatasetOut:
    """The version, with an audit entry of what it changed."""
    detail = {
        "dataset": made.name,
        "dropped": sum(made.origin["dropped"].values()),
        "flipped": made.origin["flipped"],
        "edited": made.origin["edited"],
        "held_out": sum(
            change.flipped + change.edited + change.dropped
            for change in changes_of(made)
            if change.dataset_id == made.id
        ),
    }
    audit(session, access, "dataset.edit", dataset.name, detail)
    return dataset_out(session, made)
