"""Several datasets over the same answers, read together."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.stage.inputs import DatasetInput
from steerboard_workers.alignment.missing_rewards import rows_without_reward
from steerboard_workers.stages.runtime import Stage

Row = dict[str, Any]
# What must be the same in every dataset for its rewards to be those of the same answers.
_SAME = ("prompt", "response", "group", "candidate")


def answer_inputs(stage: Stage, kinds: Collection[str] = ("labelled",)) -> dict[str, DatasetInput]:
    """The datasets `data.0`, `data.1`, ... by slot. Raises `BadInput` (`missing_input`, `wrong_dataset_kind`) and
    `EmptySelection`."""
    slots = stage.input_names("data")
    if not slots:
        raise BadInput(f"stage {stage.spec.name} needs an input named data.0", code="missing_input")
    datasets = {slot: stage.dataset(slot) for slot in slots}
    for dataset in datasets.values():
        if dataset.kind not in kinds:
            raise BadInput(
                f"dataset {dataset.name} is of kind {dataset.kind}, not {' or '.join(kinds)}",
                code="wrong_dataset_kind",
                hint="Score it with a reward model first.",
            )
        if dataset.rows == 0:
            raise EmptySelection(f"dataset {dataset.name} has no rows")
    return datasets


def weights_of(given: Sequence[float], datasets: dict[str, DatasetInput]) -> list[float]:
    """One for each dataset; 1 where none are given. Raises `BadInput` (`bad_weights`)."""
    weights = list(given) or [1.0] * len(datasets)
    if len(weights) != len(datasets):
        raise BadInput(f"{len(weights)} weights are given for {len(datasets)} datasets", code="bad_weights")
    return weights


def same_rows(stage: Stage, datasets: dict[str, DatasetInput]) -> Iterator[tuple[Row, ...]]:
    """Each row as every dataset has it. Raises `BadInput` (`rows_differ`) at the first that is of another answer."""
    named = list(datasets.values())
    for place, rows in enumerate(zip_longest(*(stage.rows(slot) for slot in datasets))):
        for dataset, row in zip(named, rows, strict=True):
            if rows[0] is None or row is None or any(row.get(name) != rows[0].get(name) for name in _SAME):
                raise BadInput(
                    f"row {place} of {dataset.name} differs from that of {named[0].name}: rewards can only be "
                    "added up for the same answers",
                    code="rows_differ",
                    hint="Score one dataset of answers with each reward model.",
                )
        yield rows
        stage.progress(place + 1, named[0].rows, "rows", "reading")


def finite_reward(row: Row, place: int, dataset: str) -> float:
    """Raises `BadInput` (`non_finite_reward`, `rows_without_reward`)."""
    if "reward" not in row:
        raise rows_without_reward(dataset, [place])
    reward = float(row["reward"])
    if not math.isfinite(reward):
        raise BadInput(f"{dataset}: the reward of row {place} is {reward}", code="non_finite_reward")
    return reward
