"""The order in which metrics are shown, and the groups of a run's curves: results on held-out data, then what training
watches, then what it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar

Value = TypeVar("Value")

# `first`: what the method names (`MethodSpec.first_metrics`). `held_out`: figures of evaluations. `cost`: time, tokens
# and memory. `device`: samples of what a run's processes and devices do (`steerboard_contracts.watching.devices`).
MetricGroup = Literal["first", "held_out", "training", "cost", "device"]

# What is looked at first of methods that name nothing else, and of those that are not installed here.
FIRST_METRICS = (
    *("eval_pair_accuracy", "pair_accuracy", "eval_reward", "reward", "eval_loss", "loss", "kl"),
    *("eval_perplexity", "perplexity", "eval_margin", "margin", "length", "ended", "entropy"),
)
PAIR_METRICS = ("eval_pair_accuracy", "pair_accuracy", "eval_loss", "loss", "eval_margin", "margin")
ONLINE_METRICS = ("reward", "kl", "length", "ended", "entropy", "loss")

DEVICE = "device/"

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
# Shown behind another figure than that which their letters follow.
_BEHIND = {"replayed_routes_differ": "sampler_ratio_max "}
_HELD_OUT = ("eval_", "held_out_")
_COSTS = ("memory_", "log_prob_seconds", "reused_", "resumed_")
_COST_WORDS = ("seconds", "tokens", "tokens_per_second", "steps", "epochs", "parameters")


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
    return (2 if held_out else 3), 0, _BEHIND.get(name, name)


def by_importance(metrics: Mapping[str, Value]) -> dict[str, Value]:
    return {name: metrics[name] for name in sorted(metrics, key=importance)}


def group_of(name: str, first: Sequence[str] = FIRST_METRICS) -> MetricGroup:
    """`first`: names that come before all others."""
    if name in first:
        return "first"
    if name.startswith(DEVICE):
        return "device"
    if name.startswith(_HELD_OUT):
        return "held_out"
    if name.startswith(_COSTS) or name in _COST_WORDS or name.endswith(("_seconds", "_tokens")):
        return "cost"
    return "training"


def in_groups(metrics: Mapping[str, Value], first: Sequence[str] = FIRST_METRICS) -> dict[str, Value]:
    """The metrics of `first` in that order, then by importance."""
    named = [name for name in first if name in metrics]
    return {name: metrics[name] for name in (*named, *sorted(metrics.keys() - set(named), key=importance))}
