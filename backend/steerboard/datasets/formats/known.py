"""The formats of files that are read: one list for readers, endings of names, pages and the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from steerboard.datasets.formats.delimited import read_csv
from steerboard.datasets.formats.json_array import read_json_array
from steerboard.datasets.formats.jsonl import read_jsonl
from steerboard.datasets.formats.parquet import read_parquet
from steerboard.datasets.formats.records import Limits, Record
from steerboard_contracts.wording import listed

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

ENDINGS = (*(ending for one in FORMATS for ending in one.endings), GZIPPED)
IN_WORDS = (
    f"{listed(one.about for one in FORMATS if one.text)}, each also gzipped, or "
    f"{listed(one.about for one in FORMATS if not one.text)}"
)


def without_ending(name: str) -> str:
    """The name of a file without the endings of its format."""
    stem = name.removesuffix(GZIPPED)
    return next((stem.removesuffix(ending) for ending in ENDINGS if stem.endswith(ending)), stem)
