"""What the commands share: exit codes, JSON on standard output, files that appear whole."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from steerboard_contracts.errors import BadInput

EXIT_FAILED, EXIT_INVALID, EXIT_UNREACHABLE, EXIT_INTERRUPTED = 1, 2, 69, 130

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]


def write_whole(path: Path, content: bytes) -> None:
    """The file appears whole or not at all. Raises `BadInput` (`cannot_write`)."""
    temporary = path.with_name(f".{path.name}.partial")
    with written(path):
        try:
            temporary.write_bytes(content)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Raises `BadInput` (`cannot_write`) where the file system refuses what happens inside."""
    try:
        yield
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror}", code="cannot_write") from None


def print_json(document: Any) -> None:
    sys.stdout.write(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n")
