"""What a method would learn from a labelled dataset, before any device is asked: the rows and weights of training.

The rules are those of the training stage: the train split only, z by the dataset's own normaliser. Rows that will not
fit into the model's window are not known here.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.lookup import owner_of
from steerboard.datasets.service import get_dataset
from steerboard.datasets.statistics.reward_arrays import Floats, Rows, binned
from steerboard.datasets.statistics.service import held_out_rows, reward_arrays
from steerboard.datasets.tables import Dataset, RewardSource, SampleRow
from steerboard.insights.schemas import LabelledExample, SelectionPreview, WeightsPreview, WeightsPreviewIn
from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.online.reward_weights import HIGHEST_EXPONENT, exponential_weight
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.tools import answer_text

_EXAMPLES = 5


def labelled_dataset(session: Session, project: Project, ref: str) -> tuple[Dataset, Normaliser]:
    """A labelled dataset with its normaliser. Raises `NotFound`, and `BadInput` (`wrong_kind`) for other kinds."""
    dataset = get_dataset(session, project, ref)
    if dataset.reward_source_id is None or dataset.normaliser is None:
        if dataset.kind == "labelled":
            raise BadInput(
                f"the rows of {dataset.name!r} have attributes and no rewards",
                code="rows_without_reward",
                hint="Score them with a reward model first.",
            )
        raise BadInput(
            f"{dataset.name!r} holds {dataset.kind} and pins no rewards; this needs a labelled dataset",
            code="wrong_kind",
            hint="Label it first: run a score stage, or pin a reward source.",
        )
    return dataset, Normaliser.model_validate(dataset.normaliser)


def selection(session: Session, project: Project, data: str, threshold: float) -> SelectionPreview:
    """Which rows a method with a threshold learns from: z > threshold, as Eq. 4 of arXiv 2308.12050."""
    dataset, normaliser = labelled_dataset(session, project, data)
    rewards = _training_rewards(session, dataset)
    cut = _first_kept(rewards, normaliser, threshold)
    total = len(rewards.ordered)
    kept = total - cut
    return SelectionPreview(
        total=total,
        kept=kept,
        share=kept / total if total else None,
        threshold_raw=normaliser.raw(threshold),
        kept_examples=_examples(session, dataset, normaliser, rewards, list(range(cut, min(cut + _EXAMPLES, total)))),
        dropped_examples=_examples(session, dataset, normaliser, rewards, _nearest_below(rewards, cut)),
    )


def kept_rows(session: Session, dataset: Dataset, threshold: float) -> int:
    """How many training rows of a labelled dataset are above the threshold."""
    normaliser = Normaliser.model_validate(dataset.normaliser)
    rewards = _training_rewards(session, dataset)
    return len(rewards.ordered) - _first_kept(rewards, normaliser, threshold)


def weights(session: Session, project: Project, given: WeightsPreviewIn) -> WeightsPreview:
    """How rewards weigh the rows: min(exp(z / beta), max_weight), as Eq. 5 of arXiv 2308.12050.

    Raises `EmptySelection` when the dataset has no training rows.
    """
    dataset, normaliser = labelled_dataset(session, project, given.data)
    ordered = _training_rewards(session, dataset).ordered
    n = len(ordered)
    if n == 0:
        raise EmptySelection(f"dataset {dataset.name} has no training rows", hint="All of its prompts are held out.")
    beta = min(max(given.beta, 1e-300), 1e300)  # beyond these no weight changes, but z / beta is not a number any more
    limit = min([HIGHEST_EXPONENT] + ([math.log(given.max_weight)] if given.max_weight is not None else []))
    with np.errstate(over="ignore", under="ignore"):
        exponent = np.minimum(_z(ordered, normaliser) / beta, limit)
        # Weights in units of the largest one: neither they nor their squares can be too large.
        top = float(exponent[-1])
        unit = np.exp(exponent - top)
    total, squares = float(unit.sum()), float(np.square(unit).sum())
    largest = math.exp(top)
    bins = binned(unit, float(unit[0]), 1.0, given.bins)
    return WeightsPreview(
        n=n,
        effective_sample_size=total * total / (n * squares),
        largest_weight=largest,
        clipped=_clipped(ordered, normaliser, beta, given.max_weight) / n,
        gradient_scale=1.0 if given.self_normalised else largest * total / n,
        bins=[bin_.model_copy(update={"low": bin_.low * largest, "high": bin_.high * largest}) for bin_ in bins],
    )


def _clipped(ordered: Floats, normaliser: Normaliser, beta: float, max_weight: float | None) -> int:
    """How many weights reach the largest allowed one. Weights rise with rewards, so only a few are worked out, and in
    the stage's own arithmetic."""
    if max_weight is None:
        return 0

    def is_clipped(place: int) -> bool:
        return exponential_weight(normaliser.z(float(ordered[place])), beta, max_weight) >= max_weight

    return len(ordered) - bisect.bisect_left(range(len(ordered)), True, key=is_clipped)


@dataclass(frozen=True)
class _TrainingRewards:
    """Pinned rewards of the train split in ascending order, and their rows; ties by row."""

    ordered: Floats
    rows: Rows


def _training_rewards(session: Session, dataset: Dataset) -> _TrainingRewards:
    arrays = reward_arrays(session, dataset, session.get_one(RewardSource, dataset.reward_source_id))
    is_train = ~held_out_rows(session, dataset)[arrays.ranking]
    return _TrainingRewards(arrays.ordered[is_train], arrays.ranking[is_train])


def _z(raw: Floats, normaliser: Normaliser) -> Floats:
    """`Normaliser.z`, operation by operation, each of which keeps the order."""
    return (raw - normaliser.mean) / normaliser.sd


def _first_kept(rewards: _TrainingRewards, normaliser: Normaliser, threshold: float) -> int:
    """The place of the lowest reward with z > threshold."""
    return int(np.searchsorted(_z(rewards.ordered, normaliser), threshold, side="right"))


def _nearest_below(rewards: _TrainingRewards, cut: int) -> list[int]:
    """Places of the highest rewards before `cut`, the highest first; ties by row."""
    places: list[int] = []
    while cut > 0 and len(places) < _EXAMPLES:
        start = int(np.searchsorted(rewards.ordered[:cut], rewards.ordered[cut - 1], side="left"))
        places += range(start, min(cut, start + _EXAMPLES - len(places)))
        cut = start
    return places


def _examples(
    session: Session, dataset: Dataset, normaliser: Normaliser, rewards: _TrainingRewards, places: list[int]
) -> list[LabelledExample]:
    values = {int(rewards.rows[place]): float(rewards.ordered[place]) for place in places}
    rows = session.scalars(
        select(SampleRow).where(SampleRow.dataset_id == owner_of(dataset), SampleRow.row.in_(values))
    )
    samples = {sample.row: sample.sample for sample in rows}
    return [
        LabelledExample(
            row=row,
            prompt=samples[row]["prompt"],
            response=answer_text(samples[row]["response"]),
            source=samples[row].get("source") or "imported",
            reward=value,
            z=normaliser.z(value),
        )
        for row, value in values.items()
    ]
