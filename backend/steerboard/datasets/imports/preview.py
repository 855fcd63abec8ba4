"""The first rows of an import as its mapping makes them samples."""

from __future__ import annotations

from itertools import islice
from typing import Any, Literal, cast

import orjson

from steerboard.datasets.imports.detection import shortened
from steerboard.datasets.imports.importer import ImportOptions, open_import
from steerboard.datasets.imports.schemas import ImportPreview, PreviewProblem, PreviewRow
from steerboard.datasets.parsing.row_validator import Kept, RowValidator
from steerboard.platform.row_sizes import take_while_small
from steerboard_contracts.samples import LabelledSample
from steerboard_files.records import Problem, Source
from steerboard_files.texts import storable

_TEXT_CHARACTERS = 4000


def preview(source: Source, options: ImportOptions, limit: int) -> ImportPreview:
    """The first `limit` rows, or fewer large ones, judged as the import will.

    Raises `UnknownColumn`, and those of unusable files."""
    opened = open_import([source], options)
    judge = RowValidator(
        opened.mapping,
        texts_only=opened.reader.format.startswith("csv"),
        clean=options.clean,
        min_margin=options.min_margin,
    )
    try:
        records, _ = take_while_small((record for _, record in islice(opened.records, limit)), limit)
        rows = [_row(line, judge(line, record)) for line, record in records]
    finally:
        opened.reader.file.close()
    return ImportPreview(rows=rows, unit=cast(Literal["line", "row"], opened.reader.unit))


def _row(line: int, verdict: Kept | Problem | str) -> PreviewRow:
    if isinstance(verdict, str):
        return PreviewRow(line=line, dropped=verdict)
    if isinstance(verdict, Problem):
        return PreviewRow(line=line, problem=PreviewProblem(code=verdict.code, reason=storable(verdict.reason)))
    sample = dict(verdict.fields)
    if isinstance(verdict.sample, LabelledSample) and verdict.sample.reward is not None:
        sample["reward"] = verdict.sample.reward
    extra: dict[str, Any] | None = orjson.loads(verdict.extra) if verdict.extra else None
    return PreviewRow(line=line, sample=shortened(sample, _TEXT_CHARACTERS), extra=shortened(extra, _TEXT_CHARACTERS))
