"""Rows of judgment files, and what of them cannot be used: a figure over too little of its input is invalid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from steerboard.datasets.formats.records import Problem, Source
from steerboard.evaluation.benchmark_files.tables import is_table, table
from steerboard.evaluation.formats.records import Unreadable
from steerboard.evaluation.formats.rows import read_rows
from steerboard_contracts.errors import BadInput
from steerboard_statistics.validity import UNUSABLE_THRESHOLD, Validity, assess

Fields = Mapping[str, Any]
Found = dict[str, Any]
T = TypeVar("T")

_SHOWN_BAD = 20
# Where the formats name the models that a row is about.
_MODELS = ("model", "model_id", "generator_2", "model_1", "model_2", "model_a", "model_b")


@dataclass
class Findings:
    """What is wrong with some files: rows that cannot be read, figures that are invalid, and warnings.

    `rows`: all that were read or tried; `of_model`: unreadable rows of each model, `of_nobody` of those that name none.
    """

    threshold: float = UNUSABLE_THRESHOLD
    rows: int = 0
    bad: int = 0
    shown: list[str] = field(default_factory=list)
    of_model: Counter[str] = field(default_factory=Counter)
    of_nobody: int = 0
    reasons: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def unreadable(self, where: str, reason: str, row: Fields | None = None) -> None:
        self.bad += 1
        if len(self.shown) < _SHOWN_BAD:
            self.shown.append(f"{where}: {reason}")
        named = {one.strip() for name in _MODELS if isinstance(one := (row or {}).get(name), str) and one.strip()}
        self.of_model.update(named)
        self.of_nobody += not named

    def whole(self) -> Validity:
        """Of all figures: rows that may have been about any model."""
        return assess(self.rows - self.of_nobody, {"unreadable": self.of_nobody}, self.threshold, what="rows")

    def invalid(self, name: str | None, reason: str) -> None:
        said = reason if name is None else f"{name}: {reason}"
        if said not in self.reasons:
            self.reasons.append(said)

    def warn(self, warning: str) -> None:
        if warning not in self.warnings:
            self.warnings.append(warning)

    def marked(
        self, found: Found, figures: Sequence[str], usable: int, unusable: Mapping[str, int], *, what: str = "judgments"
    ) -> Found:
        """`found` with `valid` and `reason`. The `figures` of an invalid one are null, and under `partial` what the
        usable input gives. `found["model"]` counts its unreadable rows too."""
        name = found.get("model")
        # A row that names two models is one row of the whole.
        own = self.of_model[name] if name is not None else self.bad - self.of_nobody
        verdict = assess(usable, {**unusable, "unreadable": own}, self.threshold, what=what)
        reason = verdict.reason or self.whole().reason
        found |= {"valid": reason is None, "reason": reason}
        if reason is None:
            return found
        self.invalid(name, reason)
        partial = {key: found[key] for key in figures if found.get(key) is not None}
        return {**found, **dict.fromkeys(figures), "partial": partial}

    def unread(self, models: Sequence[Found], figures: Sequence[str]) -> list[Found]:
        """Models of which no row can be read, all of them invalid."""
        known = {one["model"] for one in models}
        return [
            self.marked({"model": name, "n": 0, **dict.fromkeys(figures)}, figures, 0, {})
            for name in sorted(self.of_model)
            if name not in known
        ]

    def document(self, format: str, answer: Found) -> Found:
        """A file without any row that can be used is invalid, whatever the format makes of it."""
        whole = self.whole()
        if whole.reason is not None:
            self.invalid(None, whole.reason)
        elif self.bad == self.rows:
            self.invalid(None, f"none of the {self.rows:,} rows can be used")
        counted = {"rows": self.rows - self.bad, "bad_rows": self.bad, "bad": self.shown}
        said = {"valid": not self.reasons, "reasons": self.reasons, "warnings": self.warnings}
        return {"format": format, **said, **counted, **answer, "valid": not self.reasons}


def source(path: Path) -> Source:
    return Source(path.name, lambda: path.open("rb"))


def objects(path: Path, findings: Findings, *columns: str) -> Iterator[tuple[str, Fields | Problem]]:
    """(where, row) of JSON, or of a table that has `columns`. Problems are counted, and yielded all the same."""
    rows: Iterator[tuple[int, Fields | Problem]] = (
        iter(table(path, *columns)) if is_table(path) else read_rows(source(path))
    )
    for line, row in rows:
        findings.rows += 1
        where = f"{path.name}, line {line}"
        if isinstance(row, Problem):
            findings.unreadable(where, row.reason)
        yield where, row


def parsed(paths: Sequence[Path], parse: Callable[[Fields], T], findings: Findings, *columns: str) -> list[T]:
    """What `parse` makes of the rows of all files; what it cannot read is counted."""
    found = []
    for path in paths:
        for where, row in objects(path, findings, *columns):
            if isinstance(row, Problem):
                continue
            try:
                found.append(parse(row))
            except Unreadable as error:
                findings.unreadable(where, str(error), row)
    return found


def by_judge(
    rows: Sequence[T], judge_of: Callable[[T], str | None], wanted: str | None, answer: Callable[[Sequence[T]], Found]
) -> Found:
    """The figures of one judge, or of several each its own under `results`; never of several together.

    `judges`: how many rows each has. Raises `BadInput` where `wanted` is none of them.
    """
    groups: dict[str | None, list[T]] = {}
    for row in rows:
        groups.setdefault(judge_of(row), []).append(row)
    counts = {name: len(mine) for name, mine in groups.items() if name is not None}
    judges = dict(sorted(counts.items(), key=lambda one: -one[1]))
    if wanted is not None:
        known(wanted, list(judges))
        return {"judges": judges, "judge": wanted, **answer(groups[wanted])}
    if len(groups) < 2:
        return {"judges": judges, **answer(rows)}
    return {"judges": judges, "results": [{"judge": name, **answer(groups[name])} for name in groups]}


def known(wanted: str | None, judges: Sequence[str]) -> None:
    """Raises `BadInput` where `wanted` is none of them."""
    if wanted is not None and wanted not in judges:
        raise BadInput(
            f"there is no judgment of {wanted!r}; its judges are {', '.join(judges) or 'not named'}",
            code="invalid_request",
            hint="Name one of them with --judge.",
        )


def newest(
    rows: Sequence[T], key_of: Callable[[T], Hashable], time_of: Callable[[T], float | None]
) -> tuple[list[T], int]:
    """(rows that count, how many they supersede): of rows about the same thing the newest, among equals the later."""
    best: dict[Hashable, int] = {}
    for index, row in enumerate(rows):
        key = key_of(row)
        if key not in best or _moment(time_of(row)) >= _moment(time_of(rows[best[key]])):
            best[key] = index
    return [rows[index] for index in sorted(best.values())], len(rows) - len(best)


def _moment(at: float | None) -> float:
    return -1.0 if at is None else at
