"""Files into one dataset, in one transaction of the caller's. Nothing here commits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.creation import complete, new_dataset
from steerboard.datasets.imports.importer import ImportOptions, ImportWatch, open_import, write_rows
from steerboard.datasets.lookup import announce
from steerboard.datasets.queries import dataset_out
from steerboard.datasets.rewards.service import store_own_labels
from steerboard.datasets.rows.row_writer import COPY_SAMPLES, copy_in
from steerboard.datasets.schemas import BadRows, ImportReport
from steerboard_contracts.samples import SampleKind
from steerboard_files.records import Source


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

    `fence` is called when everything is stored and nothing was announced yet; what it raises undoes the import.
    Raises the errors of `steerboard.datasets.errors`; the savepoint is rolled back then, so the caller's
    transaction stays usable.
    """
    opened = open_import(sources, options)
    kind = opened.mapping.kind
    with session.begin_nested(), new_dataset(session, project, name, kind) as (dataset, writer_for):
        with copy_in(session, COPY_SAMPLES) as copy:
            writer = writer_for(copy)
            outcome = write_rows(opened, options, writer, watch)
        dataset.origin = {
            "type": "file",
            "file": sources[0].label,
            "format": opened.reader.format,
            "columns": opened.mapping.columns,
            "layouts": list(opened.layouts),
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
        complete(session, dataset, writer, outcome.rewards if kind == "labelled" else None)
        if kind == "labelled":
            store_own_labels(session, project, dataset, outcome.rewards)
        if fence:
            fence()
        announce(session, dataset)
    return ImportReport(
        dataset=dataset_out(session, dataset),
        format=opened.reader.format,
        columns=opened.mapping.columns,
        form=opened.mapping.form,
        layouts=list(opened.layouts),
        read=outcome.read,
        rows=writer.rows,
        cleaned=outcome.cleaned,
        bad_rows=outcome.bad.total,
        bad_counts=dict(outcome.bad.counts.most_common()),
        unused=[
            column.model_copy(update={"kept": False}) if column.name in outcome.not_kept else column
            for column in opened.unused
        ],
        bad=outcome.bad.kept,
    )
