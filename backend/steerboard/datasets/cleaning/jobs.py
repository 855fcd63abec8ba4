"""Cleaning as the process of imports does it (`hooks.import_request`) for a large dataset, since the API's other
requests would wait for Python's lock; for a small one, the API itself."""

from __future__ import annotations

from sqlalchemy.orm import Session

from steerboard.accounts.access import Access, audit
from steerboard.datasets.cleaning import service
from steerboard.datasets.cleaning.schemas import CleaningCreate, CleaningPreview, CleaningPreviewIn
from steerboard.datasets.hooks import ToImport
from steerboard.datasets.lookup import get_dataset
from steerboard.datasets.queries import dataset_out
from steerboard.datasets.schemas import DatasetOut
from steerboard.datasets.tables import Dataset

# Rows that may be cleaned within a request: a quarter of a second.
ROWS_AT_ONCE = 2000


def clean(session: Session, access: Access, dataset: Dataset, given: CleaningCreate) -> DatasetOut:
    """A new version, and who made it of what. Raises like `service.clean`."""
    made = service.clean(session, access.project, dataset, given, access.actor)
    detail = {"dataset": made.name, "rows": made.rows, "dropped": made.origin["dropped"]}
    audit(session, access, "dataset.clean", dataset.name, detail)
    return dataset_out(session, made)


def requested(session: Session, access: Access, given: ToImport) -> DatasetOut:
    dataset = get_dataset(session, access.project, given.into)
    return clean(session, access, dataset, CleaningCreate.model_validate(given.form))


def requested_preview(session: Session, access: Access, given: ToImport) -> CleaningPreview:
    dataset = get_dataset(session, access.project, given.into)
    return service.preview(session, access.project, dataset, CleaningPreviewIn.model_validate(given.form))
