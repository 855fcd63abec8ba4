"""Which methods fit a dataset, as it is or after a conversion, each with the rows that it would get."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.conversions.definitions import Conversion, conversions_of
from steerboard.datasets.conversions.facts import Fact, read_facts, with_rewards
from steerboard.datasets.conversions.plans import Made, Plan
from steerboard.datasets.conversions.schemas import DatasetMethods, MethodFit, Way
from steerboard.datasets.conversions.usable import Learnable, usable
from steerboard.datasets.statistics.service import graded_by
from steerboard.datasets.tables import Dataset
from steerboard_contracts.methods import methods
from steerboard_contracts.prompt_split import is_held_out
from steerboard_contracts.samples import SampleKind
from steerboard_contracts.specs.method import MethodSpec

# How rows of a kind come about where no conversion makes them.
_MISSING: dict[SampleKind, str] = {
    "instructions": "needs prompts with responses: generate answers to these prompts first",
    "preferences": "needs pairs: a chosen and a rejected answer to each prompt",
    "unpaired": "needs answers with a thumb up or down",
    "labelled": "needs answers with rewards: score these rows with a reward model first",
    "prompts": "needs prompts",
    "stepwise": "needs answers by steps, with a label for each step",
}


class _Rows(NamedTuple):
    """One way to rows of a kind. `conversion` None: the dataset as it is."""

    conversion: Conversion | None
    source: str | None
    plan: Plan | None
    rows: Sequence[Learnable]
    kind: SampleKind


def methods_for(session: Session, project: Project, dataset: Dataset) -> DatasetMethods:
    """Every method, in the order of lists."""
    kind = cast(SampleKind, dataset.kind)
    facts = read_facts(session, dataset)
    kinds = {kind for spec in methods().values() for kind in spec.data}
    given = [_Rows(None, None, None, [_as_it_is(fact) for fact in facts], kind)]
    given += [rows for rows in _converted(session, project, dataset, facts) if rows.kind in kinds]
    return DatasetMethods(
        dataset=dataset.name,
        kind=kind,
        rows=dataset.rows,
        held_out_rows=dataset.held_out_rows,
        methods=[_fit(spec, kind, len(facts), given) for spec in methods().values()],
    )


def _converted(session: Session, project: Project, dataset: Dataset, facts: Sequence[Fact]) -> Iterable[_Rows]:
    fraction = 0.0 if dataset.origin.get("split") == "train" else project.held_out_fraction
    for conversion in conversions_of(cast(SampleKind, dataset.kind)):
        if conversion.name != "pinned_rewards":
            plan = conversion.plan(facts)
            rows = [_as_made(made, fraction) for made in plan.made]
            yield _Rows(conversion, None, plan, rows, conversion.gives)
            continue
        for source, _ in graded_by(session, dataset):
            graded = with_rewards(session, dataset, source, facts)
            # They share the rows, and so their split.
            rows = [_as_it_is(fact) for fact in graded]
            yield _Rows(conversion, source.name, conversion.plan(graded), rows, conversion.gives)


def _as_it_is(fact: Fact) -> Learnable:
    return Learnable(fact.prompt, fact.held_out, fact.equal_sides, fact.desirable, fact.reward)


def _as_made(made: Made, fraction: float) -> Learnable:
    """No conversion makes pairs of equal sides."""
    held_out = is_held_out(made.first.prompt_hash, fraction)
    return Learnable(("prompt", made.first.prompt_hash), held_out, desirable=made.desirable)


def _fit(spec: MethodSpec, kind: SampleKind, read: int, given: Sequence[_Rows]) -> MethodFit:
    candidates = [_way(spec, read, rows) for rows in given if rows.kind in spec.data]
    # The dataset as it is comes first, and what cannot be trained on last.
    ways = sorted(candidates, key=lambda way: (way.why_not is not None, way.conversion is not None, -way.train))
    works = [way for way in ways if way.why_not is None]
    fit = MethodFit(
        method=spec.name,
        title=spec.title,
        label=spec.label,
        about=spec.about,
        source=spec.source,
        data=list(spec.data),
        fit="none",
        why_not=None,
        ways=ways,
    )
    if works:
        return fit.model_copy(update={"fit": "as_is" if works[0].conversion is None else "after_conversion"})
    why = ways[0].why_not if ways else _MISSING[spec.data[0]]
    return fit.model_copy(update={"why_not": why})


def _way(spec: MethodSpec, read: int, given: _Rows) -> Way:
    result = usable(spec, given.kind, given.rows)
    conversion, plan = given.conversion, given.plan
    return Way(
        conversion=conversion.name if conversion else None,
        source=given.source,
        title=conversion.title if conversion else "As it is",
        about=conversion.about if conversion else "No conversion is needed.",
        kind=given.kind,
        read=read,
        rows=len(given.rows),
        lost=sum(plan.lost.values()) if plan else 0,
        lost_by=dict(plan.lost) if plan else {},
        gained=plan.gained if plan else 0,
        tied=plan.tied if plan else 0,
        left_out=result.left_out,
        train=result.train,
        held_out=result.held_out,
        why_not=result.why_not,
    )
