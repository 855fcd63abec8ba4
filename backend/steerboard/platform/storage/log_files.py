"""Logs of the home's processes stay small: what is old of a large one goes, while it is being written."""

from __future__ import annotations

import logging
import os
from pathlib import Path

log = logging.getLogger(__name__)

MOST_BYTES = 64 << 20
KEPT_BYTES = 8 << 20


def trim(folder: Path, most: int = MOST_BYTES, kept: int = KEPT_BYTES) -> None:
    """Move the end of each log of more than `most` bytes to `NAME.log.1`, and empty it. Writers append to
    it, and so continue at its beginning; lines written in between may get lost."""
    for path in folder.glob("*.log"):
        try:
            if path.stat().st_size <= most:
                continue
            with path.open("rb+") as file:
                file.seek(-kept, os.SEEK_END)
                path.with_name(path.name + ".1").write_bytes(file.read(kept))
                file.truncate(0)
        except OSError as error:
            log.warning("%s could not be truncated: %s", path.name, error)
