"""Answers with the rewards of one or several models, read without keeping their texts."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.errors import BadInput, ErrorLocation
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.selection import SelectConfig
from steerboard_workers.alignment.groups import group_of
from steerboard_workers.stages.runtime import Stage
from steerboard_workers.stages.same_rows import finite_reward, labelled_inputs, same_rows, weights_of

Floats = NDArray[np.float64]
Row = dict[str, Any]


@dataclass(frozen=True)
class ScoredAnswers:
    """`groups`: rows of each prompt by candidate, in the order of their first rows; `scores`, `characters`, each of
    the raw `rewards` and the hashes `texts` are (rows,). `slots` names the inputs."""

    name: str
    slots: list[str]
    groups: list[list[int]]
    scores: Floats
    rewards: list[Floats]
    weights: list[float]
    normalisers: list[Normaliser]
    characters: Floats
    texts: NDArray[np.uint64]

    @property
    def first(self) -> str:
        return self.slots[0]


def read_scored(stage: Stage, config: SelectConfig) -> ScoredAnswers:
    """Every answer with its score. Raises `BadInput` (`no_groups`, `bad_groups`, `rows_differ`, `wrong_dataset_kind`,
    `bad_weights`, `non_finite_reward`, `missing_input`)."""
    datasets = labelled_inputs(stage)
    weights = weights_of(config.weights, datasets)
    first, *_ = datasets.values()
    reading = _Reading(len(datasets), first.name)
    for place, rows in enumerate(same_rows(stage, datasets)):
        reading.add(place, rows)
    rewards = [np.frombuffer(values) for values in reading.rewards]
    normalisers = [
        dataset.normaliser or Normaliser.fit(values.tolist(), dataset.name)
        for dataset, values in zip(datasets.values(), rewards, strict=True)
    ]
    characters = np.frombuffer(reading.characters)
    scores = np.zeros(len(characters))
    for weight, values, normaliser in zip(weights, rewards, normalisers, strict=True):
        unit = values if config.scale == "raw" else (values - normaliser.mean) / normaliser.sd
        scores += weight * unit
    scores -= config.penalty * characters
    return ScoredAnswers(
        name=first.name,
        slots=list(datasets),
        groups=reading.ordered_groups(),
        scores=scores,
        rewards=rewards,
        weights=weights,
        normalisers=normalisers,
        characters=characters,
        texts=np.frombuffer(reading.texts, dtype=np.uint64),
    )


class _Reading:
    """Collects rows; a few numbers of each."""

    def __init__(self, models: int, dataset: str) -> None:
        self._dataset = dataset
        self.rewards = [array("d") for _ in range(models)]
        self.characters = array("d")
        self.texts = array("Q")
        self._candidates = array("q")
        self._groups: dict[int, list[int]] = {}
        self._prompts: dict[int, int] = {}

    def add(self, place: int, rows: Sequence[Row]) -> None:
        """One answer as every dataset has it."""
        row = rows[0]
        group = group_of(row, self._dataset)
        prompt = _hash(json.dumps(row["prompt"], sort_keys=True))
        if self._prompts.setdefault(group, prompt) != prompt:
            self._refuse(f"row {place} and row {self._groups[group][0]} are of group {group}, with different prompts")
        self._groups.setdefault(group, []).append(place)
        self._candidates.append(int(row["candidate"]))
        self.texts.append(_hash(row["response"]))
        self.characters.append(len(row["response"]))
        for values, one in zip(self.rewards, rows, strict=True):
            values.append(finite_reward(one, place, self._dataset))

    def ordered_groups(self) -> list[list[int]]:
        """Rows of each group by candidate."""
        for group, rows in self._groups.items():
            rows.sort(key=self._candidates.__getitem__)
            for one, other in pairwise(rows):
                if self._candidates[one] == self._candidates[other]:
                    self._refuse(f"rows {one} and {other} are both candidate {self._candidates[one]} of group {group}")
        return list(self._groups.values())

    def _refuse(self, what: str) -> None:
        raise BadInput(
            f"dataset {self._dataset}: {what}",
            code="bad_groups",
            errors=[ErrorLocation(location="data.0", message=what)],
            hint="Rows of one group answer the same prompt, each as another candidate; number the groups of a file so.",
        )


def _hash(text: str) -> int:
    """Equal for equal texts; 64 bits tell the few answers of a group apart."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
