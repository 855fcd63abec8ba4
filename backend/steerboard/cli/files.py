"""Files that appear whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from steerboard_contracts.errors import BadInput


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
