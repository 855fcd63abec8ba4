"""A new dataset from another by a conversion. Callers own the transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import orjson
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.storage_quota import refuse_beyond_storage
from steerboard.accounts.tables import Project
from steerboard.datasets.conversions.definitions import CONVERSIONS, Conversion, conversions_of
from steerboard.datasets.conversions.facts import read_facts
from steerboard.datasets.conversions.plans import Made, Plan
from steerboard.datasets.conversions.schemas import ConversionCreate, ConversionOrigin
from steerboard.datasets.creation import complete, new_dataset
from steerboard.datasets.held_out_changes import inherited_changes
from steerboard.datasets.lookup import announce, owner_of
from steerboard.datasets.rewards.service import get_source, pin_labelled
from steerboard.datasets.rows.exporting import ordered_fields
from steerboard.datasets.rows.row_writer import COPY_SAMPLES, RowWriter, canonical_json, copy_in
from steerboard.datasets.statistics.service import graded_by
from steerboard.datasets.tables import Dataset, RewardSource, SampleRow
from steerboard.datasets.versions import next_version
from steerboard.platform.names import check_name
from steerboard.platform.storage import scratch
from steerboard.platform.storage.disk import create_file
from steerboard_contracts.conversions import TRAINING_ONLY
from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.judge_prompts.verdict_prompts import verdict_prompt
from steerboard_contracts.samples import GROUP_FIELDS, SampleKind, validate_sample
from steerboard_contracts.tools import answer_text

_ROWS_AT_ONCE = 500
# Among the other columns of a new row: the row it is from, or those of the chosen and the rejected answer.
_FROM = ("from_row", "from_rejected_row")


def convert(session: Session, project: Project, dataset: Dataset, given: ConversionCreate, actor: str) -> Dataset:
    """Raises `BadInput` (`wrong_kind`, `which_source`, `invalid_name`), `EmptySelection` where no row is made,
    `NameTaken`, `StorageQuotaReached`, and `NotFound` for an unknown source."""
    refuse_beyond_storage(session, project)
    conversion = _conversion(dataset, given)
    name = _name(session, project, dataset, given)
    if conversion.name == "pinned_rewards":
        source = _source(session, project, dataset, given.source)
        return pin_labelled(session, project, name=name, dataset=dataset, source=source, run_id=None)
    facts = read_facts(session, dataset)
    plan = conversion.plan(facts)
    if not plan.made:
        raise EmptySelection(
            f"{conversion.title.lower()} would produce no rows from {dataset.name!r}",
            hint=f"See which fit and why: steerboard datasets methods {dataset.name}",
        )
    all_for_training = dataset.origin.get("split") == "train" or conversion.name in TRAINING_ONLY
    making = new_dataset(session, project, name, conversion.gives, hold_out=not all_for_training)
    with session.begin_nested(), making as (made, writer_for):
        writer = _write(session, dataset, conversion, plan, writer_for)
        about = ConversionOrigin(
            of=dataset.name,
            of_id=str(dataset.id),
            conversion=conversion.name,
            read=len(facts),
            lost={str(why): count for why, count in plan.lost.items()},
            tied=plan.tied,
            actor=actor,
        )
        split = {"split": "train"} if all_for_training else {}
        columns = {"extra_columns": [[column, "int"] for column in _columns(plan)]}
        made.parent_id = dataset.id
        changed = inherited_changes(dataset)
        made.origin = {**split, **columns, **changed, **about.model_dump(), **writer.about()}
        complete(session, made, writer, None)
        announce(session, made)
    return made


def _conversion(dataset: Dataset, given: ConversionCreate) -> Conversion:
    kind = cast(SampleKind, dataset.kind)
    conversion = CONVERSIONS.get((kind, given.conversion))
    if conversion is None:
        known = ", ".join(conversion.name for conversion in conversions_of(kind)) or "none"
        raise BadInput(
            f"{dataset.name!r} holds {kind}, which {given.conversion} does not take",
            code="wrong_kind",
            hint=f"Conversions of {kind}: {known}.",
        )
    if given.source is not None and given.conversion != "pinned_rewards":
        raise BadInput(
            f"{given.conversion} takes no reward source",
            code="which_source",
            hint="Leave `source` out: the rewards that the dataset pins are used.",
        )
    return conversion


def _name(session: Session, project: Project, dataset: Dataset, given: ConversionCreate) -> str:
    if given.name is not None:
        return check_name(given.name)
    return next_version(session, project, dataset, given.conversion.replace("_", "-"))


def _source(session: Session, project: Project, dataset: Dataset, ref: str | None) -> RewardSource:
    if ref is not None:
        return get_source(session, project, ref)
    sources = [source for source, _ in graded_by(session, dataset)]
    if len(sources) != 1:
        names = ", ".join(source.name for source in sources)
        raise BadInput(
            f"{len(sources)} reward sources graded {dataset.name!r}",
            code="which_source",
            hint=f"Name one as `source`: {names}." if sources else "Score its rows first, or import rewards.",
        )
    return sources[0]


def _columns(plan: Plan) -> list[str]:
    return list(_FROM)[: 2 if any(len(made.rows) > 1 for made in plan.made) else 1]


def _write(
    session: Session, dataset: Dataset, conversion: Conversion, plan: Plan, writer_for: Callable[[Any], RowWriter]
) -> RowWriter:
    """Write by way of a file: a connection does not read while it writes by COPY."""
    with scratch.folder("conversion") as folder:
        path = folder / "rows.jsonl"
        with create_file(path, "the rows that are made") as file:
            for fields, source in _rows(session, dataset, conversion.gives, plan.made):
                file.write(orjson.dumps([fields, orjson.dumps(source).decode()], option=orjson.OPT_APPEND_NEWLINE))
        with copy_in(session, COPY_SAMPLES) as copy, path.open("rb") as lines:
            writer = writer_for(copy)
            for number, line in enumerate(lines):
                given, source_text = orjson.loads(line)
                sample = validate_sample(conversion.gives, given, number)
                fields = ordered_fields(conversion.gives, given)
                writer.add(sample, fields, canonical_json(fields), source_text)
    return writer


def _rows(
    session: Session, dataset: Dataset, gives: SampleKind, made: Sequence[Made]
) -> Iterator[tuple[dict[str, Any], dict[str, int]]]:
    """The fields of each new row, and where they are from."""
    for start in range(0, len(made), _ROWS_AT_ONCE):
        part = made[start : start + _ROWS_AT_ONCE]
        stored = _samples(session, dataset, sorted({row for made in part for row in made.rows}))
        for item in part:
            origin = dict(zip(_FROM, item.rows, strict=False))
            yield _fields(gives, item, [stored[row] for row in item.rows]), origin


def _samples(session: Session, dataset: Dataset, rows: Sequence[int]) -> dict[int, dict[str, Any]]:
    query = select(SampleRow.row, SampleRow.sample).where(
        SampleRow.dataset_id == owner_of(dataset), SampleRow.row.in_(rows)
    )
    return dict(session.execute(query).all())


def _fields(gives: SampleKind, made: Made, samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
    first = samples[0]
    if made.verdict is not None:
        chosen, rejected = answer_text(first["chosen"]), answer_text(first["rejected"])
        asked = verdict_prompt(first["prompt"], chosen, rejected, made.verdict)
        return {"prompt": asked, "reference": made.verdict}
    fields: dict[str, Any] = {"prompt": first["prompt"]}
    if gives == "prompts":
        return fields
    if gives == "preferences":
        fields |= {"chosen": first["response"], "rejected": samples[1]["response"]}
        return fields if made.margin is None else fields | {"margin": made.margin}
    fields["response"] = first[made.side or "response"]
    # Answers of one group stay one; the sides of a pair were none.
    fields |= {name: first[name] for name in GROUP_FIELDS if name in first}
    return fields if made.desirable is None else fields | {"desirable": made.desirable}
