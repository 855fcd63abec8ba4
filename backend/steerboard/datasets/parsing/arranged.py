"""Records of a file as their layout arranges them for the rules about samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from steerboard_files.records import Problem


@dataclass(frozen=True, slots=True)
class Removed:
    """A row of another tool's layout that no kind of sample holds. `rule`: the rule of cleaning that counts it."""

    rule: Literal["tie", "unranked", "diverging"]


Arranged = tuple[int, dict[str, Any] | Problem | Removed]
"""A record as its layout makes it."""
