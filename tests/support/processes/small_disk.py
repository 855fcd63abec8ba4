"""A disk that really is small: a file system in memory, mounted for the test."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

MB = 1 << 20


@contextmanager
def small_disk(place: Path, megabytes: int, *options: str) -> Iterator[Path]:
    """Skips the test where no one may mount one."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small disk")
    place.mkdir(parents=True, exist_ok=True)
    more = ",".join((f"size={megabytes}m", "mode=0755", *options))
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", more, "tmpfs", str(place)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        # Lazily: a process that is just ending may still have a file open.
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def free(place: Path) -> int:
    return shutil.disk_usage(place).free


def fill(place: Path, leave: int) -> Path:
    """A file that leaves `leave` bytes of the disk."""
    ballast = place / "ballast"
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free(place) - leave)
    return ballast
