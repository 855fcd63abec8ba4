"""What of a dataset's rows would stop a run in its first minute, asked of the database before the run starts.

The method picker reads every row; here a few questions are asked that an index or the first rows answer, unless the
answer is bad news. What only tokenising or the run's own config can tell is left to the run.
"""

from __future__ import annotations

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from steerboard.datasets.conversions.usable import one_prompt, one_sided
from steerboard.datasets.lookup import owner_of
from steerboard.datasets.tables import SAMPLE_GROUP, Dataset, SampleRow
from steerboard_contracts.specs.method import MethodSpec
from steerboard_contracts.specs.run_kind import RunKindSpec

MORE_ANSWERS = "Generate with several answers per prompt: `decoding: {temperature: 1.0, n: 8}`"


def rows_fault(session: Session, dataset: Dataset, kind: RunKindSpec, slot: str) -> str | None:
    """Why a run of this kind would learn or select nothing of these rows, and what to do; None where nothing is known
    against them. `slot`: the input for which they are given."""
    if kind.needs_field.get(dataset.kind) == "group":
        return _single_answers(session, dataset)
    return _learning_fault(session, dataset, kind.training) if kind.training and slot == "data" else None


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
