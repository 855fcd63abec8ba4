"""What the API and the worker do with datasets. Callers own the transaction; nothing here commits."""

from __future__ import annotations

import math
import uuid
from array import array
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.creation import complete, new_dataset
from steerboard.datasets.lookup import announce, delete_dataset, get_dataset
from steerboard.datasets.parsing.extras import ColumnTypes, encode_extra
from steerboard.datasets.rewards.service import (
    get_source,
    import_rewards,
    imported_source,
    pin_labelled,
    record_rewards,
    reward_source_for_model,
    store_own_labels,
)
from steerboard.datasets.rewards.sums import add_weighted, combined_source
from steerboard.datasets.rows.exporting import write_export, write_for_stage
from steerboard.datasets.rows.row_writer import COPY_SAMPLES, canonical_json, copy_in, sample_fields
from steerboard.datasets.tables import Dataset
from steerboard_contracts.errors import BadRow, EmptySelection, ErrorLocation
from steerboard_contracts.samples import SAMPLE_CLASSES, LabelledSample, SampleKind, validate_sample
from steerboard_contracts.stage.inputs import DatasetInput
from steerboard_files.jsonl import read_jsonl
from steerboard_files.records import Limits, Problem

__all__ = [
    "add_weighted",
    "announce",
    "combined_source",
    "delete_dataset",
    "export_for_stage",
    "get_dataset",
    "get_source",
    "import_rewards",
    "imported_source",
    "pin_labelled",
    "record_rewards",
    "register_rows",
    "reward_source_for_model",
    "write_export",
]


def register_rows(
    session: Session,
    project: Project,
    *,
    name: str,
    kind: SampleKind,
    path: Path,
    run_id: uuid.UUID | None,
    origin: dict[str, Any] | None = None,
    hold_out: bool = True,
) -> Dataset:
    """A stage's jsonl output as a dataset: every line a valid sample, in the order of its row numbers.

    Fields that the kind does not have are kept with the sample. No cleaning: a stage's output is what it is. Rewards of
    labelled rows are pinned under a source with the dataset's name.
    `hold_out=False` puts every row into the train split, whatever the project's split of its prompt.
    Raises `BadRow` for the first line that is not a sample, `EmptySelection` for a file without rows.
    """
    known = SAMPLE_CLASSES[kind].model_fields
    columns = ColumnTypes()
    rewards = array("d")
    making = new_dataset(session, project, name, kind, run_id, hold_out=hold_out)
    with session.begin_nested(), making as (dataset, writer_for):
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
                if isinstance(sample, LabelledSample):
                    rewards.append(math.nan if sample.reward is None else sample.reward)
                writer.add(sample, fields, canonical_json(fields), extra)
        if writer.rows == 0:
            raise EmptySelection(f"{path.name} has no rows")
        dataset.origin = {
            "type": "run",
            **(origin or {}),
            "extra_columns": columns.summary(),
            **writer.about(),
        }
        complete(session, dataset, writer, rewards if kind == "labelled" else None)
        if kind == "labelled":
            store_own_labels(session, project, dataset, rewards)
        announce(session, dataset)
    return dataset


def _bad_line(path: Path, line: int, problem: Problem) -> BadRow:
    return BadRow(
        f"line {line} of {path.name} {problem.reason}",
        code=problem.code,
        errors=[ErrorLocation(location=f"line {line}", message=problem.reason)],
    )


def export_for_stage(session: Session, dataset: Dataset, dest: Path) -> DatasetInput:
    """Write the jsonl file that a stage reads (`DatasetInput`), renamed into place at the end."""
    return write_for_stage(session, dataset, dest)
