"""Answers, with the rewards of one or several models where there are any, read without keeping their texts."""

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
from steerboard_contracts.stage.inputs import DatasetInput
from steerboard_contracts.tools import answer_text
from steerboard_workers.alignment.groups import group_of
from steerboard_workers.stages.rows.same_rows import answer_inputs, finite_reward, same_rows, weights_of
from steerboard_workers.stages.runtime import Stage

Floats = NDArray[np.float64]
Row = dict[str, Any]


@dataclass(frozen=True)
class Answers:
    """`groups`: rows of each prompt by candidate, in the order of their first rows; `characters`, each of the raw
    `rewards` and the hashes `texts` are (rows,). `first` is the input that the texts are read from, `slots` are those
    with rewards."""

    first: str
    name: str
    groups: list[list[int]]
    slots: list[str]
    rewards: list[Floats]
    weights: list[float]
    normalisers: list[Normaliser | None]
    characters: Floats
    texts: NDArray[np.uint64]


@dataclass(frozen=True)
class ScoredAnswers(Answers):
    """`scores` (rows,): by which answers are selected."""

    scores: Floats


def read_answers(stage: Stage, given: Sequence[float], judged: bool) -> Answers:
    """Every answer with its rewards, of which `given` are the weights; `judged`: they decide nothing, and there may be
    none.

    Raises `BadInput` (`no_groups`, `bad_groups`, `rows_differ`, `wrong_dataset_kind`, `bad_weights`,
    `non_finite_reward`, `missing_input`).
    """
    datasets = answer_inputs(stage, ("instructions", "labelled") if judged else ("labelled",))
    scored = {slot: dataset for slot, dataset in datasets.items() if dataset.kind == "labelled"}
    if judged and given:
        raise BadInput(
            "`weights` are of rewards, and a preference model judges these answers",
            code="bad_weights",
            hint="Leave out `weights`, or the input `judge`.",
        )
    weights = [0.0] * len(scored) if judged else weights_of(given, datasets)
    return _read(stage, datasets, list(scored), weights)


def read_graded(stage: Stage, slot: str) -> Answers:
    """Every answer of a labelled dataset with its reward. Raises like `read_answers`."""
    return _read(stage, {slot: stage.dataset(slot)}, [slot], [1.0])


def _read(stage: Stage, datasets: dict[str, DatasetInput], scored: list[str], weights: list[float]) -> Answers:
    slot, first = next(iter(datasets.items()))
    reading = _Reading(list(datasets), scored, first.name)
    for place, rows in enumerate(same_rows(stage, datasets)):
        reading.add(place, rows)
    return Answers(
        first=slot,
        name=first.name,
        groups=reading.ordered_groups(),
        slots=scored,
        rewards=[np.frombuffer(values) for values in reading.rewards],
        weights=weights,
        normalisers=[datasets[name].normaliser for name in scored],
        characters=np.frombuffer(reading.characters),
        texts=np.frombuffer(reading.texts, dtype=np.uint64),
    )


def weighted_rewards(answers: Answers, scale: str) -> Floats:
    """(rows,). Raises `BadInput` (`degenerate_rewards`)."""
    scores = np.zeros(len(answers.characters))
    for weight, values, known in zip(answers.weights, answers.rewards, answers.normalisers, strict=True):
        if scale == "zscore":
            normaliser = known or Normaliser.fit(values.tolist(), answers.name)
            values = (values - normaliser.mean) / normaliser.sd
        scores += weight * values
    return scores


class _Reading:
    """Collects rows; a few numbers of each."""

    def __init__(self, slots: list[str], scored: list[str], dataset: str) -> None:
        self._dataset = dataset
        self._slots = slots
        self._scored = [slots.index(slot) for slot in scored]
        self.rewards = [array("d") for _ in scored]
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
        answer = row["response"]
        self.texts.append(_hash(answer if isinstance(answer, str) else json.dumps(answer, sort_keys=True)))
        self.characters.append(len(answer_text(answer)))
        for values, at in zip(self.rewards, self._scored, strict=True):
            values.append(finite_reward(rows[at], place, self._dataset))

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
            errors=[ErrorLocation(location=self._slots[0], message=what)],
            hint="Rows of a group answer one prompt, each as another candidate; number a file's groups accordingly.",
        )


def _hash(text: str) -> int:
    """Equal for equal texts; 64 bits tell the few answers of a group apart."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
