"""What the API and the worker do with datasets. Callers own the transaction; nothing here commits."""

from __future__ import annotations

import uuid
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.catalogue import announce, check_free_name, delete_dataset, get_dataset
from steerboard.datasets.errors import NameTaken
from steerboard.datasets.exporting import write_export, write_for_stage
from steerboard.datasets.extras import ColumnTypes, encode_extra
from steerboard.datasets.files.jsonl import read_jsonl
from steerboard.datasets.files.records import Limits, Problem, Source
from steerboard.datasets.importing import ImportOptions, ImportWatch, open_import, write_rows
from steerboard.datasets.indexing import add_segments
from steerboard.datasets.queries import dataset_out
from steerboard.datasets.reward_arrays import save_rewards
from steerboard.datasets.reward_files import read_rewards
from steerboard.datasets.rewards import (
    add_weighted,
    fit,
    get_source,
    imported_source,
    pin_labelled,
    record_rewards,
    reward_source_for_model,
    store_rewards,
)
from steerboard.datasets.rows import COPY_REWARDS, COPY_SAMPLES, RowWriter, canonical_json, copy_in, sample_fields
from steerboard.datasets.schemas import BadRows, ImportReport
from steerboard.datasets.statistics import save_statistics
from steerboard.datasets.tables import Dataset, RewardSource
from steerboard.platform.database import new_id
from steerboard_contracts.errors import BadInput, BadRow, EmptySelection, ErrorLocation
from steerboard_contracts.samples import SAMPLE_CLASSES, SampleKind, validate_sample
from steerboard_contracts.stage import DatasetInput

__all__ = [
    "add_weighted",
    "announce",
    "delete_dataset",
    "export_for_stage",
    "get_dataset",
    "get_source",
    "import_file",
    "import_rewards",
    "import_sources",
    "imported_source",
    "pin_labelled",
    "record_rewards",
    "register_rows",
    "reward_source_for_model",
    "write_export",
]


def import_file(
    session: Session,
    project: Project,
    *,
    path: Path,
    name: str,
    kind: SampleKind | None = None,
    filename: str | None = None,
    mapping: dict[str, str] | None = None,
    bad_rows: BadRows = "refuse",
    clean: bool = True,
    min_margin: float | None = None,
    actor: str | None = None,
) -> ImportReport:
    """Import one local file; see `import_sources`."""
    options = ImportOptions(kind, mapping or {}, bad_rows, clean, min_margin)
    with path.open("rb") as file:
        source = Source(filename or path.name, lambda: file)
        return import_sources(session, project, sources=[source], name=name, options=options, actor=actor)


def import_sources(
    session: Session,
    project: Project,
    *,
    sources: list[Source],
    name: str,
    options: ImportOptions,
    actor: str | None = None,
    origin: dict[str, Any] | None = None,
    watch: ImportWatch | None = None,
    fence: Callable[[], None] | None = None,
) -> ImportReport:
    """One dataset from one or several files of the same columns. All rows or none are stored.

    `fence` is called when everything is stored and nobody was told yet; what it raises undoes the import.
    Raises the errors of `steerboard.datasets.errors`; the savepoint is rolled back then, so the caller's
    transaction stays usable.
    """
    opened = open_import(sources, options)
    kind = opened.mapping.kind
    with session.begin_nested(), _new_dataset(session, project, name, kind) as (dataset, writer_for):
        with copy_in(session, COPY_SAMPLES) as copy:
            writer = writer_for(copy)
            outcome = write_rows(opened, options, writer, watch)
        dataset.origin = {
            "type": "file",
            "file": sources[0].label,
            "format": opened.reader.format,
            "columns": opened.mapping.columns,
            "read": outcome.read,
            "cleaned": outcome.cleaned,
            "bad_rows": outcome.bad.total,
            "bad_counts": dict(outcome.bad.counts.most_common()),
            "prompts_as_text": outcome.prompts_as_text,
            "extra_columns": outcome.extra_columns,
            "actor": actor,
            **(origin or {}),
            **writer.about(),
        }
        _complete(session, dataset, writer, outcome.rewards if kind == "labelled" else None)
        if kind == "labelled":
            _store_imported_labels(session, project, dataset, outcome.rewards)
        if fence:
            fence()
        announce(session, dataset)
    return ImportReport(
        dataset=dataset_out(session, dataset),
        format=opened.reader.format,
        columns=opened.mapping.columns,
        form=opened.mapping.form,
        read=outcome.read,
        rows=writer.rows,
        cleaned=outcome.cleaned,
        bad_rows=outcome.bad.total,
        bad_counts=dict(outcome.bad.counts.most_common()),
        bad=outcome.bad.kept,
    )


def _store_imported_labels(session: Session, project: Project, dataset: Dataset, rewards: array[float]) -> None:
    source = imported_source(session, project, dataset.name)
    normaliser, reward_figures = fit(source, rewards, None)
    with copy_in(session, COPY_REWARDS) as copy:
        ids = (str(dataset.id), str(source.id))
        for row, value in enumerate(rewards):
            copy.write_row((*ids, row, value))
    save_rewards(session, dataset.id, source.id, rewards)
    dataset.reward_source_id = source.id
    dataset.normaliser = normaliser.model_dump()
    dataset.origin = {**dataset.origin, "rewards": reward_figures.model_dump()}


def register_rows(
    session: Session,
    project: Project,
    *,
    name: str,
    kind: SampleKind,
    path: Path,
    run_id: uuid.UUID | None,
    origin: dict[str, Any] | None = None,
) -> Dataset:
    """A stage's jsonl output as a dataset: every line a valid sample, in the order of its row numbers.

    Fields that the kind does not have are kept beside the sample. No cleaning: a stage's output is what it is.
    Raises `BadRow` for the first line that is not a sample, `EmptySelection` for a file without rows.
    """
    if kind == "labelled":
        raise BadInput("a labelled dataset is made of rewards, not of rows", code="wrong_kind")
    known = SAMPLE_CLASSES[kind].model_fields
    columns = ColumnTypes()
    with session.begin_nested(), _new_dataset(session, project, name, kind, run_id) as (dataset, writer_for):
        with copy_in(session, COPY_SAMPLES) as copy, path.open("rb") as file:
            writer = writer_for(copy)
            for line, record in read_jsonl(file, Limits()):
                if isinstance(record, Problem):
                    raise _bad_line(path, line, record)
                others = {key: value for key, value in record.items() if key not in known}
                extra = encode_extra(others)
                if isinstance(extra, Problem):
                    raise _bad_line(path, line, extra)
                columns.add(others)
                sample = validate_sample(kind, {k: v for k, v in record.items() if k in known}, line)
                fields = sample_fields(sample)
                writer.add(sample, fields, canonical_json(fields), extra)
        if writer.rows == 0:
            raise EmptySelection(f"{path.name} has no rows")
        dataset.origin = {
            "type": "run",
            **(origin or {}),
            "extra_columns": columns.summary(),
            **writer.about(),
        }
        _complete(session, dataset, writer, None)
        announce(session, dataset)
    return dataset


def import_rewards(
    session: Session, project: Project, dataset: Dataset, file: Source, source_name: str
) -> RewardSource:
    """Grades from a file with the columns `row` (from 0) and `value` or `reward`, one for every row.

    Raises the errors of `store_rewards`, `UnknownColumn`, and those of unusable files.
    """
    source = imported_source(session, project, source_name)
    with session.begin_nested():
        store_rewards(session, dataset, source, read_rewards(file))
    return source


def _bad_line(path: Path, line: int, problem: Problem) -> BadRow:
    return BadRow(
        f"line {line} of {path.name} {problem.reason}",
        code=problem.code,
        errors=[ErrorLocation(location=f"line {line}", message=problem.reason)],
    )


def export_for_stage(session: Session, dataset: Dataset, dest: Path) -> DatasetInput:
    """Write the jsonl file that a stage reads (`contracts.stage.DatasetInput`), renamed into place at the end."""
    return write_for_stage(session, dataset, dest)


def _complete(session: Session, dataset: Dataset, writer: RowWriter, rewards: array[float] | None) -> None:
    dataset.rows = writer.rows
    dataset.held_out_rows = writer.held_out_rows
    dataset.content_hash = writer.content_hash(rewards)
    session.flush()
    save_statistics(session, dataset, writer.figures)
    add_segments(session, dataset.id, writer.rows)


@contextmanager
def _new_dataset(
    session: Session, project: Project, name: str, kind: SampleKind, run_id: uuid.UUID | None = None
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
    salt, fraction, id_ = project.split_salt, project.held_out_fraction, dataset.id
    yield dataset, lambda copy: RowWriter(cast(Any, copy), id_, salt, fraction)
