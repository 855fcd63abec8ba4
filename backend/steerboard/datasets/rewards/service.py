"""Rewards of rows, where they come from, and labelled datasets that pin them."""

from __future__ import annotations

import math
import uuid
from array import array
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import orjson
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.errors import RewardsMismatch
from steerboard.datasets.held_out_changes import CHANGES
from steerboard.datasets.hooks import model_hash
from steerboard.datasets.lookup import announce, check_free_name, owner_of
from steerboard.datasets.rewards.files import GradedRow, read_rewards
from steerboard.datasets.rows.exporting import ordered_fields, stored_rows
from steerboard.datasets.rows.row_writer import COPY_REWARDS, ContentHash, canonical_json, copy_in
from steerboard.datasets.schemas import RewardFigures
from steerboard.datasets.statistics.reward_arrays import figures, save_rewards
from steerboard.datasets.statistics.service import statistics_of
from steerboard.datasets.tables import Dataset, Reward, RewardSource
from steerboard.platform.http.errors import NotFound
from steerboard.platform.names import check_name, find
from steerboard_contracts.errors import BadInput, ErrorLocation
from steerboard_contracts.prompts import Normaliser, RewardPart
from steerboard_contracts.samples import LARGEST_REWARD
from steerboard_files.records import Source

# Another device or batch may give the last bits of a reward differently; more than this is a different model.
_SAME = 1e-2

# What a labelled dataset records about the rows it shares with its base.
_SHARED = ("fields", "figures", "prompts_as_text", "extra_columns", CHANGES)


def get_source(session: Session, project: Project, ref: str | uuid.UUID) -> RewardSource:
    """The source by id or name. Raises `NotFound`."""
    query = select(RewardSource).where(RewardSource.project_id == project.id)
    source = find(session, query, RewardSource.id, RewardSource.name, ref)
    if source is None:
        raise NotFound(f"there is no reward source {str(ref)!r}", hint="List them: GET datasets/{dataset}/rewards.")
    return source


def reward_source_for_model(session: Session, project: Project, name: str, model_id: uuid.UUID) -> RewardSource:
    """The source of a reward model; made at its first use."""
    return _source(session, project, kind="model", name=name, model_id=model_id)


def imported_source(session: Session, project: Project, name: str) -> RewardSource:
    """The source of grades from a file."""
    return _source(session, project, kind="imported", name=name)


def _source(
    session: Session, project: Project, *, kind: str, name: str, model_id: uuid.UUID | None = None
) -> RewardSource:
    # Locked, so that two runs that grade with one model agree on its source.
    session.execute(select(Project.id).where(Project.id == project.id).with_for_update(key_share=True))
    if model_id:
        known = session.scalar(select(RewardSource).where(RewardSource.model_id == model_id))
        if known:
            return known
    named = session.scalar(select(RewardSource).where(RewardSource.project_id == project.id, RewardSource.name == name))
    if named and named.kind == kind == "imported":
        return named
    if named:
        name = f"{name[:110]}.{kind}"  # the name is used by a source of another kind
    source = RewardSource(project_id=project.id, name=check_name(name), kind=kind, model_id=model_id, weights=None)
    session.add(source)
    session.flush()
    return source


def record_rewards(session: Session, dataset: Dataset, source: RewardSource, path: Path) -> int:
    """Store a stage's jsonl of {"row", "value"}: each row of the dataset exactly once, each value finite.

    Raises `RewardsMismatch`, or `BadInput` (`non_finite_reward`, `reward_too_large`). Returns the number of rows.
    """
    with path.open("rb") as file:
        return store_rewards(session, dataset, source, read_rewards(Source(path.name, lambda: file)))


def import_rewards(
    session: Session, project: Project, dataset: Dataset, file: Source, source_name: str
) -> RewardSource:
    """Grades from a file with the columns `row` (from 0) and `value` or `reward`, one for every row.

    Raises the errors of `store_rewards`, `UnknownColumn`, and those of unusable files.
    """
    source = imported_source(session, project, source_name)
    with session.begin_nested():
        store_rewards(session, dataset, source, read_rewards(file))
    return source


def store_rewards(session: Session, dataset: Dataset, source: RewardSource, graded: Iterable[GradedRow]) -> int:
    """Does what `record_rewards` does, from (line, row, value). Rewards that a labelled dataset pins are never changed:
    the recorded ones are kept, and values that differ from them by more than rounding raise `RewardsMismatch`."""
    values = _complete(dataset.rows, graded)
    owner = owner_of(dataset)
    of_source = (Reward.dataset_id == owner, Reward.reward_source_id == source.id)
    pinned = session.scalar(
        select(Dataset.name).where(
            Dataset.reward_source_id == source.id, (Dataset.base_dataset_id == owner) | (Dataset.id == owner)
        )
    )
    if pinned is not None:
        recorded = session.execute(select(Reward.row, Reward.value).where(*of_source).order_by(Reward.row))
        _check_same([(row, value) for row, value in recorded], values, pinned)
        return len(values)
    session.execute(delete(Reward).where(*of_source))
    with copy_in(session, COPY_REWARDS) as copy:
        ids = (str(owner), str(source.id))
        for row, value in enumerate(values):
            copy.write_row((*ids, row, value))
    statistics_of(session, dataset)  # for the lengths of the responses; only old datasets lack them
    save_rewards(session, owner, source.id, values)
    return len(values)


def _complete(rows: int, graded: Iterable[GradedRow]) -> array[float]:
    """Rewards by row. Raises when a row is missing, doubled or unknown, or a value is not a finite number."""
    values = array("d", bytes(8 * rows))
    seen = bytearray(rows)
    for line, row, value in graded:
        place = [ErrorLocation(location=f"line {line}", message=f"row {row}: {value}")]
        if not isinstance(row, int) or not 0 <= row < rows:
            raise RewardsMismatch(f"line {line} names row {row}; the dataset has rows 0 to {rows - 1}", errors=place)
        if seen[row]:
            raise RewardsMismatch(f"line {line} gives row {row} a second reward", errors=place)
        # An int is finite, and may be too large for a float.
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value or abs(value) == math.inf:
            raise BadInput(
                f"line {line}: the reward of row {row} is not a finite number", code="non_finite_reward", errors=place
            )
        if abs(value) > LARGEST_REWARD:
            raise too_large(f"line {line}: the reward of row {row}", place)
        values[row] = value
        seen[row] = 1
    missing = rows - sum(seen)
    if missing:
        raise RewardsMismatch(f"{missing:,} of {rows:,} rows have no reward; the first is row {seen.index(0)}")
    return values


def too_large(what: str, errors: list[ErrorLocation] | None = None) -> BadInput:
    return BadInput(f"{what} is larger than {LARGEST_REWARD:g}", code="reward_too_large", errors=errors)


def _check_same(recorded: Sequence[tuple[int, float]], values: array[float], pinned: str) -> None:
    if len(recorded) < len(values):
        raise RewardsMismatch(
            f"dataset {pinned!r} pins rewards of {len(recorded):,} of its {len(values):,} rows; others cannot get one",
            hint="Give these rewards a different source name.",
        )
    for row, old in recorded:
        new = values[row]
        if abs(old - new) > _SAME * max(1.0, abs(old)):
            raise RewardsMismatch(
                f"row {row} has the reward {old:g} in dataset {pinned!r}, which pins it; it cannot become {new:g}",
                hint="Give these rewards a different source name.",
            )


def fit(source: RewardSource, rewards: array[float], model_hash: str | None) -> tuple[Normaliser, RewardFigures]:
    """The normaliser over all rewards (float64), and their figures. Raises for degenerate rewards."""
    normaliser = Normaliser.fit(rewards, source.name, model_hash)
    return normaliser, figures(np.sort(np.frombuffer(rewards)), normaliser.mean, normaliser.sd)


def those_given(rewards: array[float]) -> array[float]:
    """The rewards without rows that have none, which are NaN."""
    return array("d", (value for value in rewards if not math.isnan(value)))


def store_own_labels(session: Session, project: Project, dataset: Dataset, rewards: array[float]) -> None:
    """Rewards that came with the rows of a new labelled dataset: pinned, under a source with its name.

    By row, NaN where there is none; a dataset without any has attributes only, and pins no source.
    """
    given = those_given(rewards)
    if not given:
        return
    source = imported_source(session, project, dataset.name)
    normaliser, reward_figures = fit(source, given, None)
    with copy_in(session, COPY_REWARDS) as copy:
        ids = (str(dataset.id), str(source.id))
        for row, value in enumerate(rewards):
            if not math.isnan(value):
                copy.write_row((*ids, row, value))
    save_rewards(session, dataset.id, source.id, rewards)
    dataset.reward_source_id = source.id
    dataset.normaliser = normaliser.model_dump()
    dataset.origin = {**dataset.origin, "rewards": reward_figures.model_dump()}


def pin_labelled(
    session: Session, project: Project, *, name: str, dataset: Dataset, source: RewardSource, run_id: uuid.UUID | None
) -> Dataset:
    """A labelled dataset over the rows of `dataset` with the rewards of `source`, normalised together.

    Raises `RewardsMismatch` unless every row has a reward, `BadInput` (`wrong_kind`) when rows have no single
    response, and `BadInput` (`degenerate_rewards`) when there is nothing to normalise.
    """
    if dataset.kind not in ("instructions", "labelled"):
        raise BadInput(
            f"{dataset.name!r} holds {dataset.kind}; only prompts with one response can be labelled", code="wrong_kind"
        )
    check_free_name(session, project, name)
    labelled = Dataset(
        project_id=project.id,
        name=name,
        kind="labelled",
        rows=dataset.rows,
        held_out_rows=dataset.held_out_rows,
        content_hash="",
        origin={},
        base_dataset_id=owner_of(dataset),
        reward_source_id=source.id,
        normaliser=None,
        run_id=run_id,
    )
    rewards = array("d")
    content = ContentHash()
    for row in stored_rows(session, labelled):
        content.add(canonical_json(ordered_fields("labelled", orjson.loads(row.sample))))
        if row.reward is not None:
            rewards.append(row.reward)
    if len(rewards) != dataset.rows:
        raise RewardsMismatch(f"{source.name!r} has graded {len(rewards):,} of {dataset.rows:,} rows")
    known_model = model_hash(session, source.model_id) if source.model_id else None
    normaliser, reward_figures = fit(source, rewards, known_model)
    if source.parts:
        normaliser.parts = [RewardPart.model_validate(part) for part in source.parts]
    labelled.content_hash = content.hexdigest(rewards)
    labelled.normaliser = normaliser.model_dump()
    labelled.origin = {
        "type": "labelled",
        "of": dataset.name,
        "rewards": reward_figures.model_dump(),
        **{key: dataset.origin[key] for key in _SHARED if key in dataset.origin},
    }
    session.add(labelled)
    announce(session, labelled)
    return labelled
