"""Pre-launch checks for rows that would fail a run in its first minute, made in the database before the run starts.

The method picker reads every row; here a few questions are asked that an index or the first rows answer, unless the
answer is bad news. What only tokenising or the run's own config can tell is left to the run.
"""

from __future__ import annotations

from typing import Any, cast

from sqlalchemy import ColumnElement, func, select, text
from sqlalchemy.orm import Session

from steerboard.datasets.conversions.usable import one_prompt, one_sided
from steerboard.datasets.lookup import owner_of
from steerboard.datasets.tables import SAMPLE_GROUP, Dataset, SampleRow
from steerboard_contracts.attribute_names import SCORE
from steerboard_contracts.complaints import did_you_mean
from steerboard_contracts.specs.method import MethodSpec
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.training import TrainingConfig
from steerboard_contracts.wording import counted

# The number of rows that are searched for the names of their attributes.
_LOOKED_AT = 1000

MORE_ANSWERS = "Generate with several answers per prompt: `decoding: {temperature: 1.0, n: 8}`"


def rows_fault(session: Session, dataset: Dataset, kind: RunKindSpec, slot: str, config: Any = None) -> str | None:
    """Why a run of this kind would learn, select or evaluate nothing of these rows, and what to do; None where nothing
    is known against them. `slot`: the input for which they are given. `config`: the run's, where it is valid."""
    if kind.run == "evaluate" and slot == "data" and dataset.held_out_rows == 0:
        return f"`{dataset.name}` has {none_held_out(dataset.rows)}, and an evaluation asks held-out prompts"
    if kind.needs_field.get(dataset.kind) == "group":
        return _single_answers(session, dataset)
    if kind.training is None or slot != "data":
        return None
    wrong = _learning_fault(session, dataset, kind.training)
    if wrong is None and isinstance(config, TrainingConfig):
        wrong = _missing_attribute(session, dataset, config)
    return wrong


def none_held_out(rows: int) -> str:
    """How such a dataset is described, and what helps."""
    return f"no held-out rows among its {counted(rows, 'row')}; import more prompts, or raise the held-out fraction"


def _missing_attribute(session: Session, dataset: Dataset, config: TrainingConfig) -> str | None:
    """An attribute that is to be learned, and that no training row has."""
    training = (SampleRow.dataset_id == owner_of(dataset), SampleRow.held_out.is_(False))
    for name in getattr(config, "attributes", ()):
        if name == SCORE or session.scalar(select(select(SampleRow.row).where(*training, _grade(name)).exists())):
            continue
        first = select(SampleRow.sample["attributes"]).where(*training).limit(_LOOKED_AT)
        known = sorted({name for names in session.scalars(first) for name in names or ()})
        way_out = did_you_mean(name, known) or "; map its column at import: `--map attributes.NAME=COLUMN`"
        return f"no training row of `{dataset.name}` has the attribute `{name}`{way_out}"
    return None


def _grade(name: str) -> ColumnElement[bool]:
    return cast("ColumnElement[bool]", SampleRow.sample["attributes"][name].as_string().is_not(None))


def _learning_fault(session: Session, dataset: Dataset, spec: MethodSpec) -> str | None:
    training = (SampleRow.dataset_id == owner_of(dataset), SampleRow.held_out.is_(False))
    rows = dataset.rows - dataset.held_out_rows
    if "both_thumbs" in spec.needs and dataset.kind == "unpaired":
        up, down = (
            session.scalar(select(select(SampleRow.row).where(*training, thumb).exists()))
            for thumb in (SampleRow.sample["desirable"].as_boolean(), ~SampleRow.sample["desirable"].as_boolean())
        )
        if up != down:
            return one_sided(spec, rows, bool(up))
    if "two_prompts" in spec.needs and dataset.kind in spec.data:
        hashes = select(func.min(SampleRow.prompt_hash), func.max(SampleRow.prompt_hash)).where(*training)
        low, high = session.execute(hashes).one()
        if low is not None and low == high:
            return one_prompt(spec)
    return None


def _single_answers(session: Session, dataset: Dataset) -> str | None:
    group = text(SAMPLE_GROUP)
    grouped = select(func.count()).where(SampleRow.dataset_id == owner_of(dataset), text(f"{SAMPLE_GROUP} IS NOT NULL"))
    if session.scalar(select(grouped.group_by(group).having(func.count() > 1).exists())):
        return None
    prompts = session.scalar(grouped)
    if not prompts:
        return None
    return f"none of the {prompts:,} prompts in `{dataset.name}` has two answers to compare. {MORE_ANSWERS}"
