"""How far texts, or lists of tokens, begin alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def common_length(sequences: Sequence[Sequence[Any]]) -> int:
    """How many elements at the beginning all sequences share."""
    shortest = min(sequences, key=len)
    if all(sequence[: len(shortest)] == shortest for sequence in sequences):
        return len(shortest)
    return next(at for at, elements in enumerate(zip(*sequences, strict=False)) if len(set(elements)) > 1)
