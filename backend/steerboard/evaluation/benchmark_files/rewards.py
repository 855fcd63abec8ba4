"""RewardBench's figures, of a results file or of the rewards of each pair."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from steerboard.evaluation.benchmark_files.tables import content
from steerboard.evaluation.formats.records import Unreadable, number
from steerboard_statistics.benchmarks import rewardbench

# What tools call the rewards of the chosen and the rejected side.
_REWARDS = (
    ("chosen_reward", "rejected_reward"),
    ("score_chosen", "score_rejected"),
    ("scores_chosen", "scores_rejected"),
)
_MOST_RESULTS = 1 << 20

Pair = tuple[str, float, float]
"""(subset, reward of chosen, reward of rejected), NaN for one that is missing"""


def results(path: Path) -> dict[str, Any] | None:
    """A results file: one object of subsets and accuracies. None for any other file."""
    try:
        document = json.loads(content(path, _MOST_RESULTS))
    except (ValueError, RecursionError):
        return None
    known = isinstance(document, dict) and any(name in rewardbench.WEIGHTS for name in document)
    return document if known else None


def is_pair(row: Mapping[str, Any]) -> bool:
    return "subset" in row and any(chosen in row and rejected in row for chosen, rejected in _REWARDS)


def pair(row: Mapping[str, Any]) -> Pair:
    """{subset, chosen reward, rejected reward}, under the names that are in use. Raises `Unreadable`."""
    names = next(((one, other) for one, other in _REWARDS if one in row and other in row), None)
    if names is None or not isinstance(row.get("subset"), str):
        raise Unreadable("has no subset with two rewards")
    chosen, rejected = (_reward(row, name) for name in names)
    return row["subset"], chosen, rejected


def sections(accuracies: Mapping[str, Any]) -> dict[str, Any]:
    """Of subsets, numbers or texts of numbers, and whatever else a results file has."""
    known = {name: _accuracy(name, value) for name, value in accuracies.items()}
    return {"subsets": known, **asdict(rewardbench.sections(known))}


def of_pairs(pairs: Sequence[Pair]) -> dict[str, Any]:
    """`without_reward`: pairs with a reward missing, which are lost."""
    without = sum(math.isnan(chosen) or math.isnan(rejected) for _, chosen, rejected in pairs)
    return {**sections(rewardbench.subset_accuracies(pairs)), "without_reward": without}


def _reward(row: Mapping[str, Any], name: str) -> float:
    """A reward, or a list of one."""
    value = row[name]
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    found = number({name: value}, name)
    return math.nan if found is None else found


def _accuracy(name: str, value: object) -> object:
    if name not in rewardbench.WEIGHTS:
        return value
    try:
        return number({name: value}, name)
    except Unreadable:
        return value
