"""What an uploaded file looks like: its columns with examples, and how options apply to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from steerboard.datasets.errors import RowsRefused
from steerboard.datasets.imports.importer import ImportOptions, peek, plan, refuse_all_bad, unused_of
from steerboard.datasets.parsing.dialogues import is_message_list
from steerboard.datasets.parsing.mapping import FIELDS, called_like, detect_kind, may_feed
from steerboard_contracts.errors import SteerboardError
from steerboard_files.errors import UnknownColumn
from steerboard_files.records import Source
from steerboard_files.texts import storable

_EXAMPLES = 3
_EXAMPLE_CHARACTERS = 120
_MAX_COLUMNS = 1000
_MAX_NAME = 2000  # characters; a hostile file must not fill the database with names
_TYPES = ((bool, "bool"), (int, "int"), (float, "float"), (str, "text"), (dict, "object"), (list, "list"))
# The errors' own hints name options of the command line.
_HINTS: dict[type[SteerboardError], str] = {
    UnknownColumn: "Choose the kind, and the column of each field that it needs.",
    RowsRefused: "Fix these rows, or leave them out. Nothing was imported.",
}


@dataclass(frozen=True)
class Seen:
    """The first rows of a file."""

    format: str
    columns: list[str]
    rows: list[dict[str, Any]]
    layouts: tuple[str, ...] = ()

    def described(self) -> list[dict[str, Any]]:
        """[{name, types, examples}] in the file's order."""
        shown = [name for name in self.columns if len(name) <= _MAX_NAME][:_MAX_COLUMNS]
        return [_describe(name, self.rows) for name in shown]

    def mapping(self, options: ImportOptions) -> dict[str, Any]:
        """{kind, mapping, form, unused, layouts} under these options. Raises `UnknownColumn`."""
        planned = plan(self.columns, self.rows, options)
        unused = unused_of(planned, self.columns, self.rows)
        shown = [column.model_dump() for column in unused if len(column.name) <= _MAX_NAME][:_MAX_COLUMNS]
        return {
            "kind": planned.kind,
            "mapping": planned.columns,
            "form": planned.form,
            "unused": storable(shown),
            "layouts": list(self.layouts),
        }


def look(source: Source, options: ImportOptions) -> Seen:
    """Read the first rows. Raises the errors of unusable files, `RowsRefused` when no row of them can be read."""
    seen = peek([source], options.limits)
    try:
        if not seen.rows:
            refuse_all_bad(seen.first, seen.reader.unit)
        return Seen(seen.reader.format, seen.columns, seen.rows, seen.layouts)
    finally:
        seen.reader.file.close()


def detected(seen: Seen) -> dict[str, Any] | None:
    """What the columns look like with nothing chosen; a field may still lack its column. None when they fit no kind."""
    try:
        return seen.mapping(ImportOptions())
    except UnknownColumn:
        pass
    try:
        kind = detect_kind(seen.columns, seen.rows)
    except UnknownColumn:
        return None
    named = {
        field: next((name for name in called_like(field, seen.columns) if may_feed(field, name, seen.rows)), None)
        for field in FIELDS[kind]
    }
    return {"kind": kind, "mapping": {field: name for field, name in named.items() if name}, "form": "columns"}


def applied(seen: Seen, options: ImportOptions) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """(mapping, problem) of these options; one of them is None."""
    try:
        return seen.mapping(options), None
    except UnknownColumn as error:
        return None, problem_of(error)


def problem_of(error: SteerboardError) -> dict[str, Any]:
    """What is shown of an error, and kept."""
    hint = _HINTS.get(type(error), error.hint)
    if isinstance(error, UnknownColumn) and error.hint and "--" not in error.hint:
        hint = error.hint
    problem = {"code": error.code, "title": error.title, "detail": error.detail[:4000], "hint": hint}
    return storable(problem)


def reading_on(options: ImportOptions) -> ImportOptions:
    """The same options, but bad rows are only counted."""
    return replace(options, bad_rows="skip")


def shortened(value: Any, characters: int) -> Any:
    """The same with every text cut to a length."""
    if isinstance(value, str):
        return value if len(value) <= characters else f"{value[:characters]}…"
    if isinstance(value, dict):
        return {key: shortened(part, characters) for key, part in value.items()}
    if isinstance(value, list):
        return [shortened(part, characters) for part in value]
    return value


def _describe(name: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    types: dict[str, None] = {}
    examples: dict[str, None] = {}
    for row in rows:
        value = row.get(name)
        types[_type(value)] = None
        if len(examples) < _EXAMPLES and value not in (None, ""):
            examples[_example(value)] = None
    described: dict[str, Any] = storable({"name": name, "types": list(types), "examples": list(examples)})
    return described


def _type(value: Any) -> str:
    if value is None:
        return "null"
    if is_message_list(value):
        return "messages"
    return next((name for kind, name in _TYPES if isinstance(value, kind)), type(value).__name__)


def _example(value: Any) -> str:
    if not isinstance(value, str):
        try:
            value = orjson.dumps(shortened(value, _EXAMPLE_CHARACTERS), default=str).decode()
        except (TypeError, orjson.JSONEncodeError):
            value = str(value)
    text: str = shortened(value, _EXAMPLE_CHARACTERS)
    return text
