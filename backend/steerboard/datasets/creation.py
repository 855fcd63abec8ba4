"""A new dataset in its transaction: an empty row first, figures and search words when its rows are there."""

from __future__ import annotations

import uuid
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.errors import NameTaken
from steerboard.datasets.lookup import check_free_name
from steerboard.datasets.rows.row_writer import RowWriter
from steerboard.datasets.search.indexing import add_segments
from steerboard.datasets.statistics.service import save_statistics
from steerboard.datasets.tables import Dataset
from steerboard.platform.database import new_id
from steerboard_contracts.samples import SampleKind


def complete(session: Session, dataset: Dataset, writer: RowWriter, rewards: array[float] | None) -> None:
    dataset.rows = writer.rows
    dataset.held_out_rows = writer.held_out_rows
    dataset.content_hash = writer.content_hash(rewards)
    session.flush()
    save_statistics(session, dataset, writer.figures)
    add_segments(session, dataset.id, writer.rows)


@contextmanager
def new_dataset(
    session: Session,
    project: Project,
    name: str,
    kind: SampleKind,
    run_id: uuid.UUID | None = None,
    *,
    hold_out: bool = True,
) -> Iterator[tuple[Dataset, Any]]:
    """An empty dataset, invisible to others until the commit, and a maker of writers for its rows."""
    check_free_name(session, project, name)
    dataset = Dataset(
        id=new_id(),
        project_id=project.id,
        name=name,
        kind=kind,
        rows=0,
        held_out_rows=0,
        content_hash="",
        origin={},
        base_dataset_id=None,
        reward_source_id=None,
        normaliser=None,
        run_id=run_id,
    )
    session.add(dataset)
    try:
        session.flush()
    except IntegrityError as error:  # someone took the name a moment ago
        raise NameTaken(f"there is already a dataset {name!r}", hint="Choose another name.") from error
    salt, fraction, id_ = project.split_salt, project.held_out_fraction if hold_out else 0.0, dataset.id
    yield dataset, lambda copy: RowWriter(copy, id_, salt, fraction)
