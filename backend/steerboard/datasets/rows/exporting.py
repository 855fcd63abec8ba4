"""Rows out of the table by COPY: for a stage, for a download, for a hash. Never more than one batch in memory."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import orjson
from psycopg import sql
from sqlalchemy.orm import Session

from steerboard.datasets.rows.row_writer import SOFT_LABELS, calls_field, raw_connection
from steerboard.datasets.schemas import ExportFormat, ExportSplit
from steerboard.datasets.tables import Dataset
from steerboard.platform.storage.disk import create_file
from steerboard_contracts.prompt_split import half_of
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.samples import ANSWERS, ATTRIBUTES, GROUP_FIELDS, SAMPLE_CLASSES, SampleKind
from steerboard_contracts.stage.inputs import DatasetInput
from steerboard_contracts.tools import TOOL_FIELDS, stored_answer, stored_turn
from steerboard_files.records import JSON_COLUMN

_PARQUET_ROWS = 5000


class StoredRow(NamedTuple):
    """`sample` and `extra` are JSON text; `reward` is None where the dataset pins none for the row."""

    row: int
    prompt_hash: int
    held_out: bool
    sample: str
    extra: str | None
    reward: float | None


def stored_rows(session: Session, dataset: Dataset) -> Iterator[StoredRow]:
    """All rows in order. A labelled dataset without rows of its own reads its base's."""
    owner = dataset.base_dataset_id or dataset.id
    reward: sql.Composable
    join: sql.Composable
    if dataset.reward_source_id:
        reward = sql.SQL("r.value")
        join = sql.SQL(
            "LEFT JOIN rewards r ON r.dataset_id = s.dataset_id AND r.row = s.row AND r.reward_source_id = {}"
        ).format(sql.Literal(dataset.reward_source_id))
    else:
        reward, join = sql.SQL("NULL::float8"), sql.SQL("")
    statement = sql.SQL(
        "COPY (SELECT s.row, s.prompt_hash, s.held_out, s.sample::text, s.extra::text, {} FROM samples s {}"
        " WHERE s.dataset_id = {} ORDER BY s.row) TO STDOUT (FORMAT BINARY)"
    ).format(reward, join, sql.Literal(owner))
    with raw_connection(session).cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(["int4", "int8", "bool", "text", "text", "float8"])
        for row in copy.rows():
            yield StoredRow(*row)


def ordered_fields(kind: SampleKind, sample: dict[str, Any]) -> dict[str, Any]:
    """A stored sample in its kind's field order (JSONB forgets it), as `rows.sample_fields` made it."""
    fields: dict[str, Any] = {"prompt": [stored_turn(turn) for turn in sample["prompt"]]}
    for name in SAMPLE_CLASSES[kind].model_fields:
        if name in sample and name != "prompt":
            fields[name] = stored_answer(sample[name]) if name in ANSWERS else sample[name]
    if ATTRIBUTES in fields:
        fields[ATTRIBUTES] = dict(sorted(fields[ATTRIBUTES].items()))
    if kind == "labelled":
        fields.setdefault("source", "imported")
    return fields


@contextmanager
def renamed_at_end(dest: Path) -> Iterator[BinaryIO]:
    """A file under a temporary name next to `dest`, flushed to disk and renamed when all is written."""
    temporary = dest.with_name(f".{dest.name}.{os.getpid()}.part")
    try:
        with create_file(temporary, "a copy of a dataset") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(dest)
    finally:
        temporary.unlink(missing_ok=True)


def write_for_stage(session: Session, dataset: Dataset, dest: Path) -> DatasetInput:
    """The dataset as a stage reads it: one sample a line with `row`, `split` and `half`, and the raw `reward`."""
    rows = 0
    with renamed_at_end(dest) as file:
        for row in stored_rows(session, dataset):
            split = "held_out" if row.held_out else "train"
            reward = "" if row.reward is None else f', "reward": {row.reward!r}'
            tail = f'{reward}, "row": {row.row}, "split": "{split}", "half": "{half_of(row.prompt_hash)}"}}\n'
            # Spliced as text: the sample needs no parsing on its way.
            file.write((row.sample[:-1] + tail).encode())
            rows += 1
    return DatasetInput(
        name=dataset.name,
        path=str(dest),
        kind=cast(SampleKind, dataset.kind),
        rows=rows,
        content_hash=dataset.content_hash,
        normaliser=Normaliser.model_validate(dataset.normaliser) if dataset.normaliser else None,
    )


def export_records(session: Session, dataset: Dataset, split: ExportSplit = "all") -> Iterator[dict[str, Any]]:
    """The rows as a file of this dataset would hold them: fields, then the other columns of the imported file.

    A prompt that came as a text goes out as a text. The tools of a conversation are a column of their own, `tools`, as
    JSON text like the arguments of calls. Where an answer of the dataset has calls, all go out as a list of one
    message, so that a column has one type.
    """
    kind = cast(SampleKind, dataset.kind)
    as_text = bool(dataset.origin.get("prompts_as_text"))
    columns = [name for name, _ in dataset.origin.get("extra_columns", [])]
    as_messages = _answers_as_messages(dataset)
    for row in stored_rows(session, dataset):
        if split != "all" and row.held_out != (split == "held_out"):
            continue
        record = ordered_fields(kind, orjson.loads(row.sample))
        if as_text:
            record["prompt"] = record["prompt"][0]["content"]
        elif "tools" in record["prompt"][0]:
            record["tools"] = record["prompt"][0].pop("tools")
        for name in as_messages:
            given = record[name]
            record[name] = [{"role": "assistant", "content": given} if isinstance(given, str) else given]
        if row.reward is not None:
            record["reward"] = row.reward
        if row.extra:
            extra = orjson.loads(row.extra)
            record.update((name, extra[name]) for name in columns if name in extra)
            record.update((name, value) for name, value in extra.items() if name not in record)
        yield record


def _answers_as_messages(dataset: Dataset) -> list[str]:
    return [name for name in ANSWERS if calls_field(name) in dataset.origin.get("fields", ())]


def write_export(
    session: Session, dataset: Dataset, form: ExportFormat, file: BinaryIO, split: ExportSplit = "all"
) -> None:
    """Write a dataset, or one split of it, to a file in one of the formats that import reads."""
    if form == "parquet":
        _write_parquet(session, dataset, file, split)
        return
    with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, mtime=0) if form == "jsonl.gz" else _kept(file) as out:
        for record in export_records(session, dataset, split):
            out.write(orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE))


@contextmanager
def _kept(file: BinaryIO) -> Iterator[BinaryIO]:
    yield file


def _write_parquet(session: Session, dataset: Dataset, file: BinaryIO, split: ExportSplit) -> None:
    import pyarrow as pa  # costs 50 MB, so only an export to parquet pays for it
    import pyarrow.parquet as pq

    text = pa.string()
    used_by_turns = [name for name in TOOL_FIELDS if name in dataset.origin["fields"] and name != "tools"]
    function = pa.struct([("name", text), ("arguments", text)])
    calls = pa.list_(pa.struct([("id", text), ("type", text), ("function", function)]))
    by_turn = [(name, calls if name == "tool_calls" else text) for name in used_by_turns]
    answers = pa.list_(pa.struct([("role", text), ("content", text), ("tool_calls", calls)]))
    messages = pa.list_(pa.struct([("role", text), ("content", text), *by_turn]))
    soft = SOFT_LABELS in dataset.origin["fields"]
    known = {
        **dict.fromkeys(_answers_as_messages(dataset), answers),
        "prompt": text if dataset.origin.get("prompts_as_text") else messages,
        "margin": pa.float64(),
        "reward": pa.float64(),
        "desirable": pa.bool_(),
        "completions": pa.list_(text),
        "labels": pa.list_(pa.float64() if soft else pa.bool_()),
        **dict.fromkeys(GROUP_FIELDS, pa.int64()),
    }
    always = {"source", "reward"} if dataset.kind == "labelled" else set()
    used = always.union(dataset.origin["fields"])
    names = SAMPLE_CLASSES[cast(SampleKind, dataset.kind)].model_fields
    coded = [ATTRIBUTES] if ATTRIBUTES in used else []
    fields = [
        pa.field(name, known.get(name, text), metadata={JSON_COLUMN: b"1"} if name in coded else None)
        for name in names
        if name in used
    ]
    if "tools" in used:
        fields.append(pa.field("tools", text))
    types = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "text": text, "json": text}
    extra: list[tuple[str, str]] = dataset.origin.get("extra_columns", [])
    coded += [name for name, type_name in extra if type_name == "json"]
    for name, type_name in extra:
        fields.append(pa.field(name, types[type_name], metadata={JSON_COLUMN: b"1"} if name in coded else None))
    schema = pa.schema(fields)
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        batch: list[dict[str, Any]] = []
        for record in export_records(session, dataset, split):
            for name in coded:
                if record.get(name) is not None:
                    record[name] = orjson.dumps(record[name]).decode()
            if soft:
                record["labels"] = list(map(float, record["labels"]))
            batch.append(record)
            if len(batch) == _PARQUET_ROWS:
                writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=schema))
                batch = []
        if batch:
            writer.write_batch(pa.RecordBatch.from_pylist(batch, schema=schema))
