"""Rows of judgment files, and what of them cannot be used: a figure over too little of its input is invalid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from steerboard_figures.benchmark_files.repeats import Repeats
from steerboard_figures.benchmark_files.tables import is_table, table
from steerboard_figures.benchmark_files.words import Dialect
from steerboard_figures.formats.records import JUDGES, Judgment, Unreadable, named_judge
from steerboard_figures.formats.rows import read_rows
from steerboard_figures.formats.turns import TurnVerdict, unknown_turns
from steerboard_files.records import Problem, Source
from steerboard_files.texts import storable
from steerboard_statistics.validity import UNUSABLE_THRESHOLD, Validity, assess

Fields = Mapping[str, Any]
Figures = dict[str, Any]
T = TypeVar("T")
GroupsOf = Callable[[Path, Fields | None], Collection[str]]
"""What a row is about, each a figure of its own: models, a subset, an evaluator. None: a line that no one can read."""

_SHOWN_BAD = 20
_SHOWN_WORDS = 5
# Where the formats name the models that a row is about.
_MODELS = ("model", "model_id", "generator_2", "model_1", "model_2", "model_a", "model_b")


def models_of(_: Path, row: Fields | None) -> Collection[str]:
    return {
        storable(model.strip()) for name in _MODELS if isinstance(model := (row or {}).get(name), str) and model.strip()
    }


def judge_of(row: Fields) -> str | None:
    """Who judged a row, also one that cannot be read otherwise."""
    try:
        return named_judge(row, *JUDGES)
    except Unreadable:
        return None


@dataclass
class _Rows:
    """The rows of a file or a judge. `of_nobody`: unreadable ones that name none of the `groups` that other rows are
    about."""

    rows: int = 0
    unreadable: int = 0
    of_nobody: int = 0
    groups: set[str] = field(default_factory=set)


@dataclass
class Findings:
    """What is wrong with some files: rows that cannot be read, figures that are invalid, and warnings.

    `rows`: all that were read or tried; `of_group`: unreadable rows of each model, subset or evaluator, `of_pair` of
    those that name two of them, `of_nobody` of those that name none. `judge`: whose figures are being computed, where
    there are several. `dialect`: the words of the files; `repeats`: which of
    rows in no order of time counts.
    """

    threshold: float = UNUSABLE_THRESHOLD
    dialect: Dialect = field(default_factory=Dialect)
    repeats: Repeats | None = None
    rows: int = 0
    bad: int = 0
    shown: list[str] = field(default_factory=list)
    of_group: Counter[str] = field(default_factory=Counter)
    of_pair: Counter[frozenset[str]] = field(default_factory=Counter)
    of_nobody: int = 0
    reasons: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    files: dict[Path, _Rows] = field(default_factory=dict)
    judges: dict[str, _Rows] = field(default_factory=dict)
    judge: str | None = None
    invalid_groups: set[str] = field(default_factory=set)

    def row(self, path: Path, groups: Collection[str], judge: str | None = None) -> None:
        """One of a file, about these, whether it can be read or not."""
        self.rows += 1
        if judge is not None:
            self.judges.setdefault(judge, _Rows()).rows += 1
        file = self.files.setdefault(path, _Rows())
        file.rows += 1
        file.groups.update(groups)

    def unreadable(
        self, path: Path, line: int, reason: str, groups: Collection[str] = (), judge: str | None = None
    ) -> None:
        self.bad += 1
        if judge is not None:
            self.judges.setdefault(judge, _Rows()).unreadable += 1
        if len(self.shown) < _SHOWN_BAD:
            self.shown.append(f"{path.name}, line {line}: {reason}")
        self.of_group.update(groups)
        if len(groups) == 2:
            self.of_pair[frozenset(groups)] += 1
        if not groups:
            self.of_nobody += 1
            self.files.setdefault(path, _Rows()).of_nobody += 1
            if judge is not None:
                self.judges.setdefault(judge, _Rows()).of_nobody += 1

    def whole(self) -> Validity:
        """The validity of all figures, by rows that may have been about any model."""
        return assess(self.rows - self.of_nobody, {"unreadable": self.of_nobody}, self.threshold, what="rows")

    def lost(
        self, group: str | None, usable: int, unusable: Mapping[str, int], *, what: str = "judgments"
    ) -> str | None:
        """Why a figure is invalid: of what it is about, or of a file that has some of it; `group` None is all."""
        # A row that names two models is one row of the whole.
        own = self.of_group[group] if group is not None else self.bad - self.of_nobody
        reason = assess(usable, {**unusable, "unreadable": own}, self.threshold, what=what).reason
        if reason is not None or (reason := self.whole().reason) is not None:
            return reason
        concerned = {path.name: file for path, file in self.files.items() if group is None or group in file.groups}
        own_share = assess(usable, {**unusable, "unreadable": own}, self.threshold, what=what)
        for name, rows in [*concerned.items(), *self._of_judge()]:
            where = f"in {name}" if name in concerned else f"of {name}"
            nameless = assess(
                rows.rows - rows.of_nobody, {f"unreadable {where}": rows.of_nobody}, self.threshold, what="rows"
            )
            if rows.of_nobody and nameless.reason is not None:
                return nameless.reason
            # Lines that name no one are taken to be about each in proportion to its rows.
            together = round(1 - (1 - own_share.rate) * (1 - nameless.rate), 12)  # 5% is 5%, however it was computed
            if rows.of_nobody and together > self.threshold:
                return (
                    f"{100 * own_share.rate:.1f}% of its {what} cannot be used, nor {100 * nameless.rate:.1f}% of the "
                    f"rows {where}, which name no one: together more than {100 * self.threshold:.3g}%"
                )
        return None

    def _of_judge(self) -> Iterator[tuple[str, _Rows]]:
        """Whose figures are being computed; its label may have its variant behind it."""
        for name, rows in self.judges.items():
            if self.judge is not None and (self.judge == name or self.judge.startswith(f"{name} (")):
                yield name, rows

    def invalid(self, name: str | None, reason: str) -> None:
        if name is not None:
            self.invalid_groups.add(name)
        line = reason if name is None else f"{name}: {reason}"
        if line not in self.reasons:
            self.reasons.append(line)

    def warn(self, warning: str) -> None:
        if warning not in self.warnings:
            self.warnings.append(warning)

    def repeated(self, name: str | None, superseded: int, rows: int) -> None:
        """Points out rows that later ones about the same take the place of, where they are many."""
        if superseded > self.threshold * rows:
            of = "" if name is None else f"{name}: "
            self.warn(
                f"{of}{superseded:,} of {rows:,} rows repeat another row's subject, and each subject counts once: "
                "are they of several judges or runs?"
            )

    def lacking(self, name: str, missing: int, wanted: int, what: str) -> None:
        """Points out that others have items which this one lacks, so that their figures are not of the same."""
        if missing > self.threshold * wanted:
            self.warn(f"{name} has no judgment of {missing:,} of {wanted:,} {what} that others have")

    def marked(
        self,
        computed: Figures,
        figures: Sequence[str],
        usable: int,
        unusable: Mapping[str, int],
        *,
        what: str = "judgments",
        group: str | None = None,
    ) -> Figures:
        """`computed` with `valid` and `reason`. The `figures` of an invalid one are null, and `partial` has what the
        usable input gives. The unreadable rows of `group`, else of `computed["model"]`, count too."""
        name = group or computed.get("model")
        reason = self.lost(name, usable, unusable, what=what)
        computed |= {"valid": reason is None, "reason": reason}
        if reason is None:
            return computed
        self.invalid(name, reason)
        partial = {key: computed[key] for key in figures if computed.get(key) is not None}
        return {**computed, **dict.fromkeys(figures), "partial": partial}

    def unread(self, models: Sequence[Figures], figures: Sequence[str]) -> list[Figures]:
        """Models of which no row can be read, all of them invalid."""
        named = {model["model"] for model in models}
        return [
            self.marked({"model": name, "n": 0, **dict.fromkeys(figures)}, figures, 0, {})
            for name in sorted(self.of_group)
            if name not in named
        ]

    def document(self, format: str, answer: Figures) -> Figures:
        """A file without any row that can be used is invalid, whatever the format makes of it."""
        whole = self.whole()
        if whole.reason is not None:
            self.invalid(None, whole.reason)
        elif self.bad == self.rows:
            self.invalid(None, f"none of the {self.rows:,} rows can be used")
        unknown = self.dialect.unknown()
        if unknown:
            words = ", ".join(f"{word!r} ({n:,})" for word, n in list(unknown.items())[:_SHOWN_WORDS])
            more = f" and {len(unknown) - _SHOWN_WORDS:,} others" if len(unknown) > _SHOWN_WORDS else ""
            self.warn(f"no verdict is written as {words}{more}: --verdicts WORD=a, b, tie or none reads a word as one")
        counted = {"rows": self.rows - self.bad, "bad_rows": self.bad, "bad": self.shown}
        verdict = {"valid": not self.reasons, "reasons": self.reasons, "warnings": self.warnings}
        read = self.dialect.document()
        return {"format": format, **verdict, **counted, **read, **answer, "valid": not self.reasons}


def source(path: Path) -> Source:
    return Source(path.name, lambda: path.open("rb"))


def objects(
    path: Path, findings: Findings, *columns: str, groups_of: GroupsOf = models_of
) -> Iterator[tuple[int, Fields | Problem]]:
    """(line, row) of JSON, or of a table that has `columns`. Problems are counted, and yielded all the same."""
    rows: Iterator[tuple[int, Fields | Problem]] = (
        iter(table(path, *columns)) if is_table(path) else read_rows(source(path))
    )
    for line, written in rows:
        row = written if isinstance(written, Problem) else findings.dialect.read(written)
        readable = None if isinstance(row, Problem) else row
        groups = groups_of(path, readable)
        findings.row(path, groups, judge_of(readable or {}))
        if isinstance(row, Problem):
            findings.unreadable(path, line, row.reason, groups)
        yield line, row


def parsed(
    paths: Sequence[Path],
    parse: Callable[[Fields], T],
    findings: Findings,
    *columns: str,
    groups_of: GroupsOf = models_of,
) -> list[T]:
    """What `parse` makes of the rows of all files; what it cannot read is counted."""
    items = []
    for path in paths:
        for line, row in objects(path, findings, *columns, groups_of=groups_of):
            if isinstance(row, Problem):
                continue
            try:
                items.append(parse(row))
            except Unreadable as error:
                findings.unreadable(path, line, str(error), groups_of(path, row), judge_of(row))
    return items


def of_unknown_turns(rows: Iterable[Judgment]) -> Counter[str]:
    """The number of one judge's rows that may be of another turn than the one they count for, by model."""
    unknown: Counter[str] = Counter()
    verdicts = (
        TurnVerdict(
            (row.model, row.other, row.a_first), row.question_id, row.turn, row.turn_given, row.value, row.raw, row.at
        )
        for row in rows
    )
    for (model, other, _), count in unknown_turns(verdicts).items():
        for name in filter(None, (model, other)):
            unknown[str(name)] += count
    return unknown
