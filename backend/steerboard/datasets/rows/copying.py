"""The rows of one dataset into another of its kind, some of them changed or left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import orjson
from sqlalchemy.orm import Session

from steerboard.datasets.held_out_changes import CHANGES
from steerboard.datasets.rows.exporting import StoredRow, ordered_fields, stored_rows
from steerboard.datasets.rows.row_writer import COPY_SAMPLES, RowWriter, canonical_json, copy_in
from steerboard.datasets.tables import Dataset
from steerboard.platform.storage import scratch
from steerboard.platform.storage.disk import create_file
from steerboard_contracts.samples import SampleKind, validate_sample

# Columns of the origin that describe the rows of a version as well.
INHERITED = ("extra_columns", "prompts_as_text", "split", CHANGES)


def write_changed(
    session: Session, dataset: Dataset, writer_for: Callable[[Any], RowWriter], change: Callable[[StoredRow], Any]
) -> RowWriter:
    """`change` gives a row's sample as JSON, or None to leave it out. By way of a file: a connection does not read by
    COPY while it writes by COPY."""
    with scratch.folder("version") as folder:
        path = folder / "kept.jsonl"
        with create_file(path, "the rows that are kept") as file:
            for row in stored_rows(session, dataset):
                sample = change(row)
                if sample is not None:
                    file.write(orjson.dumps([row.row, sample, row.extra], option=orjson.OPT_APPEND_NEWLINE))
        with copy_in(session, COPY_SAMPLES) as copy, path.open("rb") as lines:
            writer, kind = writer_for(copy), cast(SampleKind, dataset.kind)
            for line in lines:
                number, stored, extra_text = orjson.loads(line)
                fields = ordered_fields(kind, stored)
                writer.add(validate_sample(kind, fields, number), fields, canonical_json(fields), extra_text)
    return writer
