"""The order in which metrics are shown: results on held-out data, then what training watches, then what it took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

Value = TypeVar("Value")

_RESULTS = ("winner", "highest_mean", "best", "best_reward", "spearman")
_FIRST = (
    *_RESULTS,
    *("accuracy", "pair_accuracy", "loss", "reward", "reward_mean", "reward_sd"),
    *("kl", "margin", "perplexity", "length", "ended", "entropy", "clip_share", "explained_variance"),
)
_LAST = (
    *("grad_norm", "lr", "effective_sample_size", "steps", "epochs", "tokens", "tokens_per_second"),
    *("memory_peak", "parameters", "architecture"),
)
_HELD_OUT = ("eval_", "held_out_")
_COSTS = ("memory_", "log_prob_seconds", "reused_", "resumed_")


def importance(name: str) -> tuple[int, int, str]:
    """The sort key of a metric."""
    held_out = next((start for start in _HELD_OUT if name.startswith(start)), "")
    plain = name.removeprefix(held_out)
    if plain in _FIRST:
        place = _FIRST.index(plain)
        return (0 if held_out or plain in _RESULTS else 1), place, name
    if plain in _LAST:
        return 4, _LAST.index(plain), name
    if name.startswith(_COSTS) or name.endswith("_rows"):
        return 5, 0, name
    return (2 if held_out else 3), 0, name


def by_importance(metrics: Mapping[str, Value]) -> dict[str, Value]:
    return {name: metrics[name] for name in sorted(metrics, key=importance)}
