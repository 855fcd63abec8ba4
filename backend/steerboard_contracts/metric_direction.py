"""Which way a metric is better, by its name; many metrics, such as lengths, have no better way."""

from __future__ import annotations

import re
from typing import Literal

_PART = re.compile(r"[^a-z0-9]+")
_LOWER = frozenset({"loss", "perplexity", "error", "errors", "kl"})
_HIGHER = frozenset(
    {"accuracy", "reward", "rewards", "margin", "margins", "spearman", "pearson", "f1", "win", "wins", "score"}
)


def better(name: str) -> Literal["low", "high"] | None:
    """`eval_loss` is better low, `eval_pair_accuracy` high; a deviation or a gradient's size is neither."""
    parts = set(_PART.split(name.lower()))
    if parts & {"sd", "std", "norm", "seconds", "clip", "share"}:
        return None
    if parts & _LOWER:
        return "low"
    return "high" if parts & _HIGHER else None
