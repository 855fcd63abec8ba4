"""Cleaning a dataset of pairs: what the rules would drop, and a new version without it. Callers own the transaction."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import orjson
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.cleaning.analysis import Analysis, StreamedRow, analyse
from steerboard.datasets.cleaning.rules import RULES, TITLES
from steerboard.datasets.cleaning.schemas import (
    CleaningCreate,
    CleaningOrigin,
    CleaningPreview,
    CleaningPreviewIn,
    CleaningRules,
    Dropped,
    DroppedRow,
    RuleCount,
)
from steerboard.datasets.creation import complete, new_dataset
from steerboard.datasets.errors import NothingToClean
from steerboard.datasets.hooks import EvaluationText, evaluation_texts
from steerboard.datasets.lookup import announce
from steerboard.datasets.queries import sample_out
from steerboard.datasets.review.remarks import carry_over
from steerboard.datasets.rows.copying import INHERITED, write_changed
from steerboard.datasets.rows.exporting import StoredRow, stored_rows
from steerboard.datasets.rows.row_writer import copy_in
from steerboard.datasets.tables import Dataset, DroppedRowRecord, SampleRow
from steerboard.datasets.versions import next_version
from steerboard.platform.names import check_name
from steerboard_contracts.errors import BadInput, EmptySelection

# Characters of a row that the slower parser reads: the other one ends the process where memory lacks for a long text.
_LONG = 1 << 16

_COPY_DROPPED = "COPY dropped_rows (dataset_id, row, rule, of_row, detail) FROM STDIN"


def preview(session: Session, project: Project, dataset: Dataset, given: CleaningPreviewIn) -> CleaningPreview:
    """Changes nothing. Raises `BadInput` (`wrong_kind`), and `NotFound` for an unknown evaluation."""
    evaluations = _evaluations(session, project, dataset, given)
    analysis = _analyse(session, dataset, given, evaluations)
    counts = analysis.counts()
    rules = [
        RuleCount(
            rule=rule,
            title=TITLES[rule],
            on=_is_on(given, rule),
            rows=counts.get(rule, 0),
            examples=examples(
                session, dataset, [analysis.why(row) for row in analysis.dropped_rows(rule)[: given.examples]]
            ),
        )
        for rule in RULES
    ]
    return CleaningPreview(
        rows=analysis.rows,
        kept=analysis.kept,
        kept_held_out=analysis.kept_held_out,
        checked_prompts=len(evaluations),
        rules=rules,
    )


def read_from(session: Session, project: Project, dataset: Dataset, given: CleaningPreviewIn) -> bytes:
    """A hash of all that a preview depends on. Raises as `preview`."""
    evaluations = _evaluations(session, project, dataset, given)
    digest = hashlib.sha256(orjson.dumps([dataset.id, given.model_dump(), dataset.origin]))
    for text in evaluations:
        digest.update(repr(text).encode(errors="surrogatepass"))
    return digest.digest()


def clean(session: Session, project: Project, dataset: Dataset, given: CleaningCreate, actor: str) -> Dataset:
    """A new version with the rows that no rule drops, and a record of the others.

    Raises as `preview`, and `NothingToClean`, `EmptySelection` where no row is left, `NameTaken`, `BadInput`
    (`invalid_name`).
    """
    evaluations = _evaluations(session, project, dataset, given)
    name = check_name(given.name) if given.name is not None else next_version(session, project, dataset, "clean")
    analysis = _analyse(session, dataset, given, evaluations)
    if analysis.kept == analysis.rows:
        raise NothingToClean(
            f"these rules drop no row of {dataset.name!r}", hint="Use it as it is, or enable more rules."
        )
    if analysis.kept == 0:
        raise EmptySelection(
            f"these rules drop all {analysis.rows:,} rows of {dataset.name!r}",
            hint="Look at the counts and examples of each rule first: steerboard datasets clean NAME --dry-run",
        )
    all_for_training = dataset.origin.get("split") == "train"
    making = new_dataset(session, project, name, "preferences", hold_out=not all_for_training)
    with session.begin_nested(), making as (made, writer_for):

        def kept(row: StoredRow) -> Any:
            return None if analysis.is_dropped(row.row) else orjson.Fragment(row.sample)

        writer = write_changed(session, dataset, writer_for, kept)
        about = CleaningOrigin(
            of=dataset.name,
            of_id=str(dataset.id),
            rules=given.model_dump(exclude={"name"}),
            read=analysis.rows,
            dropped={str(rule): count for rule, count in analysis.counts().items()},
            checked_prompts=len(evaluations),
            actor=actor,
        )
        inherited = {key: dataset.origin[key] for key in INHERITED if key in dataset.origin}
        made.parent_id = dataset.id
        made.origin = {**inherited, **about.model_dump(), **writer.about()}
        complete(session, made, writer, None)
        _record(session, made, analysis)
        carry_over(session, dataset, made)
        announce(session, made)
    return made


def examples(session: Session, dataset: Dataset, dropped: Iterable[Dropped]) -> list[DroppedRow]:
    """Dropped rows of a dataset with what they hold, and what they repeat or contradict."""
    why = list(dropped)
    wanted = {drop.row for drop in why} | {drop.of_row for drop in why if drop.of_row is not None}
    rows = session.scalars(
        select(SampleRow).where(SampleRow.dataset_id == dataset.id, SampleRow.row.in_(sorted(wanted)))
    )
    samples = {sample.row: sample_out(sample, None, whole=False) for sample in rows}
    return [
        DroppedRow(
            **drop.model_dump(),
            sample=samples[drop.row],
            of_sample=samples[drop.of_row] if drop.of_row is not None else None,
        )
        for drop in why
    ]


def dropped_out(session: Session, parent: Dataset, records: Iterable[DroppedRowRecord]) -> list[DroppedRow]:
    """Records of a cleaned dataset as the API shows them; `parent` has their content."""
    why = [
        Dropped(row=record.row, rule=record.rule, of_row=record.of_row, **(record.detail or {})) for record in records
    ]
    return examples(session, parent, why)


def _analyse(session: Session, dataset: Dataset, given: CleaningRules, evaluations: list[EvaluationText]) -> Analysis:
    def stream() -> Iterator[StreamedRow]:
        for row in stored_rows(session, dataset):
            yield StreamedRow(row.held_out, _parsed(row.sample))

    return analyse(stream, dataset.rows, given, evaluations)


def _parsed(sample: str) -> Any:
    """Raises `MemoryError`."""
    if len(sample) > _LONG:
        return json.loads(sample)
    try:
        return orjson.loads(sample)
    except orjson.JSONDecodeError as error:
        # What is stored is JSON: the parser has no other reason than its memory, and no other error for that.
        raise MemoryError from error


def _evaluations(session: Session, project: Project, dataset: Dataset, given: CleaningRules) -> list[EvaluationText]:
    if dataset.kind != "preferences":
        raise BadInput(
            f"{dataset.name!r} holds {dataset.kind}; only preferences can be cleaned",
            code="wrong_kind",
            hint="Other kinds are cleaned when they are imported.",
        )
    if not given.evaluation_overlap:
        return []
    return evaluation_texts(session, project.id, given.evaluations, _made_from(session, dataset))


def _made_from(session: Session, dataset: Dataset | None) -> uuid.UUID | None:
    """The evaluation whose rankings and verdicts a dataset, or what it is a version of, was made from."""
    while dataset is not None:
        if dataset.origin.get("type") == "evaluation":
            return uuid.UUID(dataset.origin["evaluation"]["id"])
        dataset = session.get(Dataset, dataset.parent_id) if dataset.parent_id else None
    return None


def _is_on(given: CleaningRules, rule: str) -> bool:
    return given.min_margin is not None if rule == "small_margin" else bool(getattr(given, rule))


def _record(session: Session, made: Dataset, analysis: Analysis) -> None:
    with copy_in(session, _COPY_DROPPED) as copy:
        for row in analysis.dropped_rows():
            why = analysis.why(row)
            detail: dict[str, Any] = why.model_dump(include={"similarity", "evaluation"}, exclude_none=True)
            text = orjson.dumps(detail).decode() if detail else None
            copy.write_row((str(made.id), row, why.rule, why.of_row, text))
