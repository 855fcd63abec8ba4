"""What the commands share: exit codes, JSON on standard output, files that appear whole."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

EXIT_FAILED, EXIT_INVALID, EXIT_UNREACHABLE, EXIT_INTERRUPTED = 1, 2, 69, 130

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]


def write_whole(path: Path, content: bytes) -> None:
    """The file appears whole or not at all."""
    temporary = path.with_name(f".{path.name}.partial")
    temporary.write_bytes(content)
    temporary.replace(path)


def print_json(document: Any) -> None:
    sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
