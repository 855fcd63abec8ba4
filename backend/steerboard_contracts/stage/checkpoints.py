"""How checkpoints of a stage are named."""

from __future__ import annotations

import re

# {"files": {NAME: SHA-256}} of all other files of a checkpoint's folder, which has no folders below it.
CHECKPOINT_MANIFEST = "manifest.json"
_CHECKPOINT = re.compile(r"a(\d+)-step-(\d{8,})")


def checkpoint_name(attempt: int, step: int) -> str:
    return f"a{attempt}-step-{step:08d}"


def checkpoint_place(name: str) -> tuple[int, int] | None:
    """(step, attempt) of a checkpoint's name, by which the newest is the largest; None of any other name."""
    match = _CHECKPOINT.fullmatch(name)
    return (int(match[2]), int(match[1])) if match else None
