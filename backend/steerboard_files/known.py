"""The formats of files that are read: one list for readers, endings of names, pages and the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from steerboard_contracts.wording import listed
from steerboard_files.delimited import read_csv
from steerboard_files.json_array import read_json_array
from steerboard_files.jsonl import read_jsonl
from steerboard_files.parquet import read_parquet
from steerboard_files.records import Limits, Record

GZIPPED = ".gz"


@dataclass(frozen=True)
class Format:
    """`text`: it is text, and may be gzipped."""

    name: str
    about: str
    endings: tuple[str, ...]
    read: Callable[[BinaryIO, Limits], Iterator[Record]]
    text: bool = True


JSONL = Format("jsonl", "JSON lines", (".jsonl", ".ndjson"), read_jsonl)
JSON = Format("json", "a JSON array", (".json",), read_json_array)
CSV = Format("csv", "CSV with commas, semicolons or tabs", (".csv", ".tsv"), read_csv)
PARQUET = Format("parquet", "parquet", (".parquet",), read_parquet, text=False)
FORMATS = (JSONL, JSON, CSV, PARQUET)

ENDINGS = (*(ending for format_ in FORMATS for ending in format_.endings), GZIPPED)
IN_WORDS = (
    f"{listed(format_.about for format_ in FORMATS if format_.text)}, each also gzipped, or "
    f"{listed(format_.about for format_ in FORMATS if not format_.text)}"
)


def without_ending(name: str) -> str:
    """The name of a file without the endings of its format."""
    stem = name.removesuffix(GZIPPED)
    return next((stem.removesuffix(ending) for ending in ENDINGS if stem.endswith(ending)), stem)
