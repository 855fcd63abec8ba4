"""Datasets, samples and rewards as the API shows them."""

from __future__ import annotations

import uuid
from typing import Literal, cast

from sqlalchemy import ARRAY, Integer, func, select
from sqlalchemy import cast as sql_cast
from sqlalchemy.orm import Session

from steerboard.datasets.held_out_changes import CHANGES, changes_of
from steerboard.datasets.lookup import owner_of
from steerboard.datasets.schemas import DatasetOut, RewardFigures, RewardSourceOut, SampleOut
from steerboard.datasets.statistics.service import graded_by
from steerboard.datasets.tables import Dataset, Reward, RewardSource, SampleRow
from steerboard.platform.row_sizes import ROW_BYTES, shown_part, weight
from steerboard_contracts.prompt_split import half_of
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.samples import SampleKind

_SUMMARISED = ("figures", "rewards", "fields", "extra_columns", "prompts_as_text", "edited_rows", CHANGES)


def dataset_out(session: Session, dataset: Dataset) -> DatasetOut:
    return datasets_out(session, [dataset])[0]


def datasets_out(session: Session, datasets: list[Dataset]) -> list[DatasetOut]:
    """The figures were worked out when the rows were written, so a list costs one query."""
    ids = {d.reward_source_id for d in datasets if d.reward_source_id}
    names: dict[uuid.UUID, str] = {}
    if ids:
        sources = session.scalars(select(RewardSource).where(RewardSource.id.in_(ids)))
        names = {source.id: source.name for source in sources}
    return [_out(dataset, names) for dataset in datasets]


def _out(dataset: Dataset, source_names: dict[uuid.UUID, str]) -> DatasetOut:
    lengths = dataset.origin.get("figures") or {}
    return DatasetOut(
        id=dataset.id,
        name=dataset.name,
        kind=cast(SampleKind, dataset.kind),
        rows=dataset.rows,
        held_out_rows=dataset.held_out_rows,
        content_hash=dataset.content_hash,
        origin={key: value for key, value in dataset.origin.items() if key not in _SUMMARISED},
        held_out_changes=changes_of(dataset),
        base_dataset_id=dataset.base_dataset_id,
        parent_id=dataset.parent_id,
        reward_source=source_names.get(dataset.reward_source_id) if dataset.reward_source_id else None,
        normaliser=Normaliser.model_validate(dataset.normaliser) if dataset.normaliser else None,
        rewards=RewardFigures.model_validate(dataset.origin["rewards"]) if "rewards" in dataset.origin else None,
        prompt_characters=lengths.get("prompt_characters"),
        response_characters=lengths.get("response_characters"),
        run_id=dataset.run_id,
        created_at=dataset.created_at,
    )


def sample_out(sample: SampleRow, reward: float | None, *, whole: bool) -> SampleOut:
    """`whole`: also where the row is large."""
    cut = not whole and weight(sample) > ROW_BYTES
    return SampleOut(
        row=sample.row,
        half=half_of(sample.prompt_hash),
        split="held_out" if sample.held_out else "train",
        sample=shown_part(sample.sample) if cut else sample.sample,
        extra=shown_part(sample.extra) if cut and sample.extra else sample.extra,
        reward=reward,
        cut=cut,
    )


def rewards_of(session: Session, dataset: Dataset, rows: list[int]) -> dict[int, float]:
    """The pinned rewards of some rows; empty where the dataset pins no source."""
    if dataset.reward_source_id is None:
        return {}
    wanted = func.unnest(sql_cast(rows, ARRAY(Integer))).table_valued("row").render_derived()
    # A look-up for each row: for a list of rows the planner may, after some repetitions, read the whole source.
    value = select(Reward.value).where(
        Reward.dataset_id == owner_of(dataset),
        Reward.reward_source_id == dataset.reward_source_id,
        Reward.row == wanted.c.row,
    )
    known = session.execute(select(wanted.c.row, value.scalar_subquery()))
    return {row: reward for row, reward in known if reward is not None}


def reward_sources(session: Session, dataset: Dataset) -> list[RewardSourceOut]:
    """Every source that graded rows of this dataset, with its figures."""
    return [
        RewardSourceOut(
            id=source.id,
            name=source.name,
            kind=cast(Literal["model", "weighted", "imported"], source.kind),
            model_id=source.model_id,
            weights=source.weights,
            parts=source.parts,
            figures=RewardFigures.model_validate(stored.figures),
        )
        for source, stored in graded_by(session, dataset)
    ]
