"""A file becomes a dataset: read, map, validate, clean, split, COPY. One pass, one transaction, bounded memory."""

from __future__ import annotations

import math
from array import array
from collections import Counter, abc
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal, Protocol

from steerboard.datasets.errors import UnusedColumns
from steerboard.datasets.parsing.arranged import Arranged, Removed
from steerboard.datasets.parsing.bad_rows import BadRowLog
from steerboard.datasets.parsing.cells import with_messages
from steerboard.datasets.parsing.cleaning import Rule, removed_words
from steerboard.datasets.parsing.extras import ColumnTypes, storable_columns
from steerboard.datasets.parsing.layouts import STEPS, TABLES, converted, find_layout
from steerboard.datasets.parsing.mapping import Mapping, listed, plan_mapping
from steerboard.datasets.parsing.row_validator import RowValidator
from steerboard.datasets.parsing.unused_columns import unused_columns, unused_of_messages
from steerboard.datasets.schemas import BadRowReport, UnusedColumn
from steerboard_contracts.errors import EmptySelection
from steerboard_contracts.samples import LabelledSample, Sample, SampleKind
from steerboard_contracts.wording import counted
from steerboard_files.detect import open_reader
from steerboard_files.errors import EmptyFile, UnknownColumn
from steerboard_files.records import Limits, Problem, Reader, Record, Source

_PEEK_ROWS = 1000
_PEEK_BYTES = 8 * 2**20
_WATCHED_ROWS = 64  # so many rows between two words to the watch


@dataclass(frozen=True)
class ImportOptions:
    """`mapping` is field -> column; fields in `without` are left out even where a column would fit them.
    `min_margin` drops preferences whose margin is smaller."""

    kind: SampleKind | None = None
    mapping: dict[str, str] = field(default_factory=dict)
    bad_rows: Literal["refuse", "skip"] = "refuse"
    clean: bool = True
    min_margin: float | None = None
    limits: Limits = field(default_factory=Limits)
    without: frozenset[str] = frozenset()
    unused: Literal["keep", "refuse"] = "keep"


@dataclass
class Peek:
    """The first rows of the sources. `records` goes over all, the first ones included. `layouts`: those of other tools
    that were recognised."""

    reader: Reader
    first: list[tuple[str | None, Arranged]]
    records: Iterator[tuple[str | None, Arranged]]
    layouts: tuple[str, ...] = ()

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [value for _, (_, value) in self.first if isinstance(value, dict)]

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row))


@dataclass
class OpenedImport:
    """What the first rows showed: how to read the rest."""

    reader: Reader
    records: Iterator[tuple[str | None, Arranged]]
    mapping: Mapping
    unused: list[UnusedColumn]
    layouts: tuple[str, ...] = ()


@dataclass
class ImportCounts:
    """Counts of one import; the rows themselves are in the writer. `rows`: those that can be stored. `not_kept`: other
    columns with values that cannot be."""

    read: int
    rows: int
    cleaned: dict[Rule, int]
    bad: BadRowLog
    rewards: array[float]
    prompts_as_text: bool
    extra_columns: list[tuple[str, str]]
    not_kept: set[str]


class ImportWatch(Protocol):
    """Follows an import that runs. What it raises ends the import."""

    def at(self, read: int, rows: int) -> None:
        """Called every few rows."""

    def bad_row(self, bad: BadRowReport) -> None: ...

    def counted(self, opened: OpenedImport, outcome: ImportCounts) -> None:
        """All rows were read; the import may still be refused for what they are."""


class RowSink(Protocol):
    """Takes the rows that an import keeps."""

    def add(self, sample: Sample, fields: dict[str, Any], canonical: bytes, extra: str | None) -> None: ...


def peek(sources: list[Source], limits: Limits, named: Collection[str] = ()) -> Peek:
    """Open the first source and read its first rows, in our names where another tool's layout is recognised. Columns
    that are `named` by the user stay as they are.

    Raises typed errors for unusable files.
    """
    reader = open_reader(sources[0], limits)
    first, records = _first_of(with_messages(_all_records(sources, reader, limits), named), limits)
    if not first:
        raise EmptyFile(f"{sources[0].label} has no rows")
    seen = Peek(reader, first, records)
    for step in STEPS:
        chosen = find_layout(step, seen.rows, named)
        if chosen is not None:
            layout, convert = chosen
            whole = layout in TABLES
            first, records = _first_of(converted(seen.records, convert, numbered=whole), limits)
            reader = replace(seen.reader, unit="row") if whole else seen.reader
            seen = Peek(reader, first, records, (*seen.layouts, layout.name))
    return seen


def _first_of(
    records: Iterable[tuple[str | None, Arranged]], limits: Limits
) -> tuple[list[tuple[str | None, Arranged]], Iterator[tuple[str | None, Arranged]]]:
    """The first records, and all of them."""
    first = []
    size = 0
    for item in records:
        first.append(item)
        size += _size(item[1][1], limits)
        if len(first) >= _PEEK_ROWS or size >= _PEEK_BYTES:
            break
    return first, chain(first, records)


def _size(record: dict[str, Any] | Problem | Removed, limits: Limits) -> int:
    """The approximate size of what was read for it."""
    if isinstance(record, Problem) and record.code == "line_too_long":
        return limits.line
    return len(str(record))


def open_import(sources: list[Source], options: ImportOptions) -> OpenedImport:
    """Look at the first rows and settle kind and mapping. Raises typed errors for unusable files or columns, and
    `UnusedColumns` where the options refuse them."""
    seen = peek(sources, options.limits, options.mapping.values())
    if not seen.rows:
        refuse_all_bad(seen.records, seen.reader.unit)
    mapping = plan(seen.columns, seen.rows, options)
    unused = unused_of(mapping, seen.columns, seen.rows)
    if unused and options.unused == "refuse":
        raise UnusedColumns(mapping.kind, mapping.columns, unused)
    return OpenedImport(seen.reader, seen.records, mapping, unused, seen.layouts)


def unused_of(mapping: Mapping, columns: list[str], rows: list[dict[str, Any]]) -> list[UnusedColumn]:
    """Columns of the first rows that feed no field."""
    cannot = {name for row in rows[:100] for name in row.keys() - (storable_columns(row) or {}).keys()}
    unused = unused_columns(mapping.kind, columns, rows[:100], mapping.read, mapping.consumed - mapping.read | cannot)
    return unused + unused_of_messages(rows[:100], mapping.read)


def plan(columns: list[str], rows: list[dict[str, Any]], options: ImportOptions) -> Mapping:
    """The mapping for a file that begins with these rows. Raises `UnknownColumn`."""
    mapping = plan_mapping(options.kind, columns, rows[:100], options.mapping, options.without)
    if options.min_margin is not None and not mapping.has_margin:
        raise UnknownColumn(
            f"a minimum margin was requested, but no column has a margin; the file has {listed(columns)}",
            hint="Name it with --map margin=COLUMN, or leave --min-margin out.",
        )
    return mapping


def _all_records(sources: list[Source], first: Reader, limits: Limits) -> Iterator[tuple[str | None, Record]]:
    """Records with the name of their file, when there are several; a file is opened when its turn comes."""
    for place, source in enumerate(sources):
        reader = open_reader(source, limits) if place else first
        label = source.label if len(sources) > 1 else None
        for record in reader.records:
            yield label, record
        reader.file.close()


def refuse_all_bad(records: Iterable[tuple[str | None, Arranged]], unit: str) -> None:
    """Raises `RowsRefused` when none of the records can be read, and `EmptySelection` when their layout leaves none."""
    bad = BadRowLog()
    removed: Counter[Rule] = Counter()
    for label, (number, value) in records:
        if isinstance(value, Removed):
            removed[value.rule] += 1
        elif isinstance(value, Problem):
            bad.add(number, value, label)
        else:
            return
    if removed:
        raise _none_left(bad.total + removed.total(), removed, bad)
    raise bad.refusal(unit, bad.total)


def _none_left(read: int, cleaned: abc.Mapping[Rule, int], bad: BadRowLog) -> EmptySelection:
    reasons = [removed_words(cleaned), bad.words]
    return EmptySelection(
        f"none of {counted(read, 'row')} is left. {'; '.join(filter(None, reasons))}",
        hint="Correct these rows in the file, or keep equal sides and duplicates with --no-clean (clean=false).",
        extra={"bad_counts": dict(bad.counts), "cleaned": dict(cleaned)},
    )


def write_rows(
    opened: OpenedImport, options: ImportOptions, writer: RowSink, watch: ImportWatch | None = None
) -> ImportCounts:
    """Validate and store every row. Raises `RowsRefused` after the last row, so that it names all bad ones."""
    judge = RowValidator(
        opened.mapping,
        texts_only=opened.reader.format.startswith("csv"),
        clean=options.clean,
        min_margin=options.min_margin,
    )
    bad = BadRowLog(watch.bad_row if watch else None)
    rewards = array("d")
    columns = ColumnTypes()
    plain = True
    read = rows = 0
    refusing = options.bad_rows == "refuse"
    for label, (number, record) in opened.records:
        read += 1
        if watch and not read % _WATCHED_ROWS:
            watch.at(read, rows)
        verdict = judge(number, record)
        if isinstance(verdict, Problem):
            bad.add(number, verdict, label)
            continue
        if isinstance(verdict, str):
            continue  # cleaned away
        rows += 1
        if bad.total and refusing:
            continue  # it will be rolled back anyway; only the rest of the report is wanted
        if isinstance(verdict.sample, LabelledSample):
            rewards.append(math.nan if verdict.sample.reward is None else verdict.sample.reward)
        plain = plain and verdict.shaped.plain_prompt
        columns.add(verdict.shaped.extra)
        writer.add(verdict.sample, verdict.fields, verdict.canonical, verdict.extra)
    outcome = ImportCounts(read, rows, judge.dropped, bad, rewards, plain, columns.summary(), judge.not_kept)
    if watch:
        watch.counted(opened, outcome)
    if bad.total and refusing:
        raise bad.refusal(opened.reader.unit, read)
    if rows == 0:
        raise _none_left(read, outcome.cleaned, bad)
    return outcome
