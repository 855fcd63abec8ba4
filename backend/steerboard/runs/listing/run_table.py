"""The list of runs as a CSV file: a line for each run that a filter finds, with the columns that were chosen."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import BinaryIO

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access
from steerboard.marks.service import marks_of
from steerboard.platform.csv_cells import text_cell
from steerboard.runs.listing.fields import Fields
from steerboard.runs.listing.key_metrics import key_metrics
from steerboard.runs.listing.page import RunsQuery, runs_page
from steerboard.runs.listing.rows import Value, columns_of, values_of
from steerboard.runs.tables import Pipeline, Run

# A name and a value, so two columns of the file.
KEY_METRIC = "key_metric"
DEFAULT = ("state", KEY_METRIC, "kind", "method", "duration", "device_seconds", "created")
_RUNS_AT_ONCE = 500


def writer_of(session: Session, access: Access, query: RunsQuery, columns: Sequence[str]) -> Callable[[BinaryIO], None]:
    """Writes the file: `run`, `id` and `tags`, then the columns in their order. Raises `BadFilter` at once, for the
    filter, the sort and the columns."""
    names = list(dict.fromkeys(columns or DEFAULT))
    fields = columns_of(Fields(session, access.project.id), [name for name in names if name != KEY_METRIC])
    page = runs_page(session, access.project, access.owner, query, cursor=None, limit=_RUNS_AT_ONCE)

    def write(out: BinaryIO) -> None:
        lines = io.TextIOWrapper(out, encoding="utf-8", newline="", write_through=True)
        table = csv.writer(lines)
        heads = [head for name in names for head in ((name, "key_metric_value") if name == KEY_METRIC else (name,))]
        table.writerow(["run", "id", "tags", *map(text_cell, heads)])
        runs, following = page
        while True:
            full_names = _full_names(session, runs)
            marks = marks_of(session, access.owner, [run.id for run in runs])
            key = key_metrics(session, runs) if KEY_METRIC in names else {}
            for run, values in zip(runs, values_of(session, runs, fields), strict=True):
                cells: list[Value] = [full_names[run], str(run.id), ", ".join(marks[run.id].tags)]
                for name in names:
                    if name != KEY_METRIC:
                        cells.append(values[name])
                    elif run.id in key:
                        cells += [key[run.id].name, key[run.id].value]
                    else:
                        cells += [None, None]
                table.writerow([text_cell(cell) if isinstance(cell, str) else cell for cell in cells])
            if following is None:
                break
            runs, following = runs_page(
                session, access.project, access.owner, query, cursor=following, limit=_RUNS_AT_ONCE
            )
        lines.detach()

    return write


def _full_names(session: Session, runs: Sequence[Run]) -> dict[Run, str]:
    """Names with that of the pipeline, as the list shows them."""
    ids = {run.pipeline_id for run in runs if run.pipeline_id is not None}
    named = dict(session.execute(select(Pipeline.id, Pipeline.name).where(Pipeline.id.in_(ids))).all())
    return {run: f"{named[run.pipeline_id]}.{run.name}" if run.pipeline_id else run.name for run in runs}
