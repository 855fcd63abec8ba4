"""What a method would learn from a labelled dataset, before any device is asked: the rows and weights of training.

The rules are those of the training stage: the train split only, z by the dataset's own normaliser. Rows that will not
fit into the model's window are not known here.
"""

from __future__ import annotations

import math

from sqlalchemy import ColumnElement, Select, exists, false, func, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.histograms import binned
from steerboard.datasets.rewards import owner_of
from steerboard.datasets.service import get_dataset
from steerboard.datasets.tables import Dataset, Reward, SampleRow
from steerboard.runs.preview_schemas import LabelledExample, MleFilterPreview, RwrPreview, RwrPreviewIn
from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.prompts import Normaliser

_EXAMPLES = 5
# exp() of less is nothing beside 1, and its square would be too small a number for Postgres.
_NOTHING = -340.0
# exp() of more is too large a number; as in the stage.
_HIGHEST_EXPONENT = 700.0


def labelled_dataset(session: Session, project: Project, ref: str) -> tuple[Dataset, Normaliser]:
    """A labelled dataset with its normaliser. Raises `NotFound`, and `BadInput` (`wrong_kind`) for other kinds."""
    dataset = get_dataset(session, project, ref)
    if dataset.reward_source_id is None or dataset.normaliser is None:
        raise BadInput(
            f"{dataset.name!r} holds {dataset.kind} and pins no rewards; this needs a labelled dataset",
            code="wrong_kind",
            hint="Label it first: run a score stage, or pin a reward source.",
        )
    return dataset, Normaliser.model_validate(dataset.normaliser)


def mle_filter(session: Session, project: Project, data: str, threshold: float) -> MleFilterPreview:
    """Which rows MLE with filtering learns from: z > threshold, Eq. 4 of arXiv 2308.12050."""
    dataset, normaliser = labelled_dataset(session, project, data)
    rows = _training_rewards(dataset)
    is_kept = _z(normaliser) > threshold
    total, kept = session.execute(rows.with_only_columns(func.count(), func.count().filter(is_kept))).one()
    nearest_above = rows.where(is_kept).order_by(Reward.value, Reward.row)
    nearest_below = rows.where(~is_kept).order_by(Reward.value.desc(), Reward.row)
    return MleFilterPreview(
        total=total,
        kept=kept,
        share=kept / total if total else None,
        threshold_raw=normaliser.raw(threshold),
        kept_examples=_examples(session, dataset, normaliser, nearest_above),
        dropped_examples=_examples(session, dataset, normaliser, nearest_below),
    )


def kept_rows(session: Session, dataset: Dataset, threshold: float) -> int:
    """How many training rows of a labelled dataset lie above the threshold."""
    normaliser = Normaliser.model_validate(dataset.normaliser)
    rows = _training_rewards(dataset).where(_z(normaliser) > threshold)
    return session.scalar(rows.with_only_columns(func.count())) or 0


def rwr(session: Session, project: Project, asked: RwrPreviewIn) -> RwrPreview:
    """How RWR weighs the rows: min(exp(z / beta), max_weight), Eq. 5 of arXiv 2308.12050.

    Raises `EmptySelection` when the dataset has no training rows.
    """
    dataset, normaliser = labelled_dataset(session, project, asked.data)
    rows = _training_rewards(dataset)
    extremes = rows.with_only_columns(func.count(), func.min(Reward.value), func.max(Reward.value))
    n, low, high = session.execute(extremes).one()
    if n == 0:
        raise EmptySelection(f"dataset {dataset.name} has no training rows", hint="All of its prompts are held out.")
    beta = min(max(asked.beta, 1e-300), 1e300)  # beyond these no weight changes, but z / beta is no number any more
    limits = [_HIGHEST_EXPONENT] + ([math.log(asked.max_weight)] if asked.max_weight is not None else [])
    exponent = func.least(_z(normaliser) / beta, *limits)
    lowest, top = (min(normaliser.z(raw) / beta, *limits) for raw in (low, high))
    # Weights in units of the largest one: neither they nor their squares can be too large.
    unit = func.exp(func.greatest(exponent - top, _NOTHING))
    unclipped = func.exp(func.greatest(func.least(_z(normaliser) / beta, _HIGHEST_EXPONENT), -_HIGHEST_EXPONENT))
    is_clipped = unclipped >= asked.max_weight if asked.max_weight is not None else false()
    sums = (func.sum(unit), func.sum(unit * unit), func.count().filter(is_clipped))
    total, squares, clipped = session.execute(rows.with_only_columns(*sums)).one()
    largest = math.exp(top)
    bins = binned(session, rows, unit, n, math.exp(lowest - top), 1.0, asked.bins)
    return RwrPreview(
        n=n,
        effective_sample_size=total * total / (n * squares),
        largest_weight=largest,
        clipped=clipped / n,
        gradient_scale=1.0 if asked.self_normalised else largest * total / n,
        bins=[one.model_copy(update={"low": one.low * largest, "high": one.high * largest}) for one in bins],
    )


def _training_rewards(dataset: Dataset) -> Select[int, float]:
    """(row, value) of the pinned rewards in the train split."""
    owner = owner_of(dataset)
    held_out = exists().where(SampleRow.dataset_id == owner, SampleRow.row == Reward.row, SampleRow.held_out)
    return select(Reward.row, Reward.value).where(
        Reward.dataset_id == owner, Reward.reward_source_id == dataset.reward_source_id, ~held_out
    )


def _z(normaliser: Normaliser) -> ColumnElement[float]:
    """`Normaliser.z` in the database, operation by operation."""
    return (Reward.value - normaliser.mean) / normaliser.sd


def _examples(
    session: Session, dataset: Dataset, normaliser: Normaliser, rewards: Select[int, float]
) -> list[LabelledExample]:
    values = {found.row: found.value for found in session.execute(rewards.limit(_EXAMPLES))}
    found = session.scalars(
        select(SampleRow).where(SampleRow.dataset_id == owner_of(dataset), SampleRow.row.in_(values))
    )
    samples = {sample.row: sample.sample for sample in found}
    return [
        LabelledExample(
            row=row,
            prompt=samples[row]["prompt"],
            response=samples[row]["response"],
            source=samples[row].get("source") or "imported",
            reward=value,
            z=normaliser.z(value),
        )
        for row, value in values.items()
    ]
