"""Whose judgments the rows of a file are: figures are of one judge, never of several together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from steerboard_contracts.errors import BadInput
from steerboard_figures.benchmark_files.reading import Figures, Findings
from steerboard_figures.formats.records import Judgment

T = TypeVar("T")

_MATH, _TURNS = "-math", "-multi-turn"


@dataclass(frozen=True, slots=True)
class JudgedItem:
    """Who judged a row: `judge`, None where no one is named; `variant`, its prompt template or which reviewer it was;
    `item`, what the row is about."""

    judge: str | None
    variant: str | None
    item: Hashable


def judged_item(row: Sequence[Judgment]) -> JudgedItem:
    """What the judgments of one row hold."""
    first = row[0]
    about = frozenset(side.model or side.answer_id for side in row) | {first.other}
    return JudgedItem(first.judge, first.template, (first.question_id, first.turn, about))


def labels(rows: Sequence[JudgedItem]) -> list[str | None]:
    """The judge of each row, with its variant where one judge has several that are not parts of one whole.

    MT-Bench asks by one template about math and coding and by another about the rest, with a further one of each for
    second turns. These are one judge, as are reviewers who each have questions of their own; two versions of a
    template, or two variants that judge the same item, are two.
    """
    variants: dict[str | None, dict[str | None, set[Hashable]]] = {}
    for row in rows:
        variants.setdefault(row.judge, {}).setdefault(_base(row.variant), set()).add(row.item)
    apart = {judge for judge, named in variants.items() if not _one_whole(named)}
    return [_label(row.judge, _base(row.variant)) if row.judge in apart else row.judge for row in rows]


def _base(variant: str | None) -> str | None:
    return None if variant is None else variant.removesuffix(_TURNS)


def _one_whole(variants: dict[str | None, set[Hashable]]) -> bool:
    if sum(map(len, variants.values())) > len(set().union(*variants.values())):
        return False
    templates = [template for template in variants if template is not None and not template.isdecimal()]
    return all(sum((_MATH in template) is math for template in templates) < 2 for math in (True, False))


def _label(judge: str | None, variant: str | None) -> str | None:
    if variant is None:
        return judge
    return variant if judge is None else f"{judge} ({variant})"


def by_judge(
    rows: Sequence[T],
    names: Sequence[str | None],
    wanted: str | None,
    findings: Findings,
    answer: Callable[[Sequence[T]], Figures],
) -> Figures:
    """The figures of one judge, or of several each its own under `results`; never of several together. `names`: of the
    judge of each row, see `labels`; `wanted`: one of them, or a judge of whom there are several variants.

    `judges`: how many rows each has. Raises `BadInput` where `wanted` is none of them.
    """
    groups: dict[str | None, list[T]] = {}
    for row, name in zip(rows, names, strict=True):
        groups.setdefault(name, []).append(row)
    counts = Counter({name: len(group) for name, group in groups.items() if name is not None})
    judges = dict(counts.most_common())

    def of(name: str | None) -> Figures:
        findings.judge = name
        return answer(groups[name])

    for name, judge_rows in findings.judges.items():
        if judge_rows.unreadable == judge_rows.rows and not any(
            label == name or str(label).startswith(f"{name} (") for label in groups
        ):
            findings.invalid(f"judge {name}", f"none of its {judge_rows.rows:,} rows can be used")
    if wanted is not None:
        matching = [name for name in judges if name == wanted or name.startswith(f"{wanted} (")]
        check_judge(wanted, list(judges) if not matching else [wanted])
        groups = {name: groups[name] for name in matching}
        if len(groups) == 1:
            return {"judges": judges, "judge": matching[0], **of(matching[0])}
    if len(groups) < 2:
        return {"judges": judges, **answer(rows)}
    return {"judges": judges, "results": [{"judge": name, **of(name)} for name in groups]}


def check_judge(wanted: str | None, judges: Sequence[str]) -> None:
    """Raises `BadInput` where `wanted` is none of them."""
    if wanted is not None and not judges:
        raise BadInput("its rows do not name the judge", code="invalid_request", hint="Leave --judge out.")
    if wanted is not None and wanted not in judges:
        raise BadInput(
            f"there is no judgment of {wanted!r}; its judges are {', '.join(judges)}",
            code="invalid_request",
            hint="Name one of them with --judge.",
        )
