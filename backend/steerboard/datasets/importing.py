"""A file becomes a dataset: read, map, validate, clean, split, COPY. One pass, one transaction, bounded memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

from steerboard.datasets.bad_rows import BadRowLog
from steerboard.datasets.cleaning import Cleaner
from steerboard.datasets.errors import EmptyFile, UnknownColumn
from steerboard.datasets.extras import ColumnTypes, encode_extra
from steerboard.datasets.files.detect import open_reader
from steerboard.datasets.files.records import Limits, Problem, Reader, Record, Source
from steerboard.datasets.mapping import Mapping, plan_mapping
from steerboard.datasets.rows import RowWriter, canonical_json, sample_fields
from steerboard.datasets.shaping import Shaper
from steerboard_contracts.errors import BadRow, EmptySelection
from steerboard_contracts.samples import LabelledSample, PreferenceSample, Sample, SampleKind, validate_sample

_PEEK_ROWS = 1000
_PEEK_BYTES = 8 * 2**20


@dataclass(frozen=True)
class ImportOptions:
    """`mapping` is field -> column. `min_margin` drops preferences whose margin is smaller."""

    kind: SampleKind | None = None
    mapping: dict[str, str] = field(default_factory=dict)
    bad_rows: Literal["refuse", "skip"] = "refuse"
    clean: bool = True
    min_margin: float | None = None
    limits: Limits = field(default_factory=Limits)


@dataclass
class OpenedImport:
    """What the first rows told: how to read the rest."""

    reader: Reader
    records: Iterator[tuple[str | None, Record]]
    mapping: Mapping


@dataclass
class Outcome:
    """Counts of one import; the rows themselves are in the writer."""

    read: int
    cleaned: dict[str, int]
    bad: BadRowLog
    rewards: array[float]
    prompts_as_text: bool
    extra_columns: list[tuple[str, str]]


def open_import(sources: list[Source], options: ImportOptions) -> OpenedImport:
    """Look at the first rows and settle kind and mapping. Raises typed errors for unusable files or columns."""
    first_reader = open_reader(sources[0], options.limits)
    records = _all_records(sources, first_reader, options.limits)
    first: list[tuple[str | None, Record]] = []
    size = 0
    for item in records:
        first.append(item)
        size += len(str(item[1][1]))
        if len(first) >= _PEEK_ROWS or size >= _PEEK_BYTES:
            break
    rows = [value for _, (_, value) in first if isinstance(value, dict)]
    records = chain(first, records)
    if not rows:
        if not first:
            raise EmptyFile(f"{sources[0].label} has no rows")
        _refuse(records, first_reader.unit)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    mapping = plan_mapping(options.kind, columns, rows[:100], options.mapping)
    if options.min_margin is not None and not mapping.has_margin:
        raise UnknownColumn(
            f"a smallest margin was asked for, but no column gives a margin; the file has {', '.join(columns)}",
            hint="Name it with --map margin=COLUMN, or leave --min-margin out.",
        )
    return OpenedImport(first_reader, records, mapping)


def _all_records(sources: list[Source], first: Reader, limits: Limits) -> Iterator[tuple[str | None, Record]]:
    """Records with the name of their file, when there are several; a file is opened when its turn comes."""
    for place, source in enumerate(sources):
        reader = open_reader(source, limits) if place else first
        label = source.label if len(sources) > 1 else None
        for record in reader.records:
            yield label, record
        reader.file.close()


def _refuse(records: Iterable[tuple[str | None, Record]], unit: str) -> None:
    bad = BadRowLog()
    for label, (number, value) in records:
        if not isinstance(value, Problem):
            return
        bad.add(number, value, label)
    raise bad.refusal(unit, bad.total)


def write_rows(opened: OpenedImport, options: ImportOptions, writer: RowWriter) -> Outcome:
    """Validate and store every row. Raises `RowsRefused` after the last row, so that it names all bad ones."""
    mapping = opened.mapping
    shape = Shaper(mapping, texts_only=opened.reader.format.startswith("csv"))
    cleaner = Cleaner(mapping.kind, options.clean, options.min_margin)
    bad = BadRowLog()
    rewards = array("d")
    columns = ColumnTypes()
    plain = True
    read = 0
    refusing = options.bad_rows == "refuse"
    for label, (number, record) in opened.records:
        read += 1
        shaped = record if isinstance(record, Problem) else shape(record)
        if isinstance(shaped, Problem):
            bad.add(number, shaped, label)
            continue
        if cleaner.before_validation(shaped):
            continue
        extra = encode_extra(shaped.extra)
        if isinstance(extra, Problem):
            bad.add(number, extra, label)
            continue
        sample = _validated(mapping.kind, shaped.sample, number, shaped.diverging)
        if isinstance(sample, Problem):
            bad.add(number, sample, label)
            continue
        fields = sample_fields(sample)
        canonical = canonical_json(fields)
        if cleaner.after_validation(sample, _identity(sample, fields, canonical)):
            continue
        if bad.total and refusing:
            continue  # it will be rolled back anyway; only the rest of the report is wanted
        if isinstance(sample, LabelledSample):
            rewards.append(sample.reward)
        plain = plain and shaped.plain_prompt
        columns.add(shaped.extra)
        writer.add(sample, fields, canonical, extra)
    if bad.total and refusing:
        raise bad.refusal(opened.reader.unit, read)
    if writer.rows == 0:
        raise EmptySelection(
            f"none of {read:,} rows is left: {bad.total:,} bad, {sum(cleaner.dropped.values()):,} cleaned away",
            extra={"bad_counts": dict(bad.counts), "cleaned": dict(cleaner.dropped)},
        )
    cleaned: dict[str, int] = {str(rule): count for rule, count in cleaner.dropped.items()}
    return Outcome(read, cleaned, bad, rewards, plain, columns.summary())


def _validated(kind: SampleKind, fields: dict[str, Any], number: int, diverging: bool) -> Sample | Problem:
    if diverging:
        return Problem("bad_row", "chosen and rejected part before their last turn")
    try:
        return validate_sample(kind, fields, number)
    except BadRow as error:
        reason = error.errors[0].message
        code = "non_finite_reward" if reason == "reward: is not a finite number" else "bad_row"
        return Problem(code, reason)


def _identity(sample: Sample, fields: dict[str, Any], canonical: bytes) -> bytes:
    """What makes two rows duplicates: everything but a preference's margin; a label counts with its reward."""
    if isinstance(sample, PreferenceSample) and sample.margin is not None:
        return canonical_json({name: value for name, value in fields.items() if name != "margin"})
    if isinstance(sample, LabelledSample):
        return canonical + repr(sample.reward).encode()
    return canonical
