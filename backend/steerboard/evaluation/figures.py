"""The figures of judgment files, without a project: what a benchmark's own scripts would print, from the same files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steerboard.datasets.errors import WrongFileType
from steerboard.datasets.formats.records import Problem, Source
from steerboard.evaluation.benchmark_files import judgments, rewards
from steerboard.evaluation.benchmark_files.alpaca_eval import Annotations, LengthControl
from steerboard.evaluation.benchmark_files.tables import is_table, read_difficulty, read_gamed, read_weights, table
from steerboard.evaluation.formats.detection import JUDGMENTS, expect, read
from steerboard.evaluation.formats.records import Unreadable
from steerboard.evaluation.formats.rows import read_rows
from steerboard_contracts.errors import BadInput

__all__ = ["LengthControl", "figures", "read_difficulty", "read_gamed", "read_weights"]

_SHOWN_BAD = 20
_FORMATS = ("auto", *JUDGMENTS, "rewardbench")


@dataclass
class Bad:
    """Rows that cannot be read: all counted, the first of them named. `rows`: all that were read or tried."""

    rows: int = 0
    count: int = 0
    shown: list[str] = field(default_factory=list)

    def add(self, where: str, reason: str) -> None:
        self.count += 1
        if len(self.shown) < _SHOWN_BAD:
            self.shown.append(f"{where}: {reason}")

    def counted(self) -> dict[str, Any]:
        return {"rows": self.rows - self.count, "bad_rows": self.count, "bad": self.shown}


def figures(paths: Sequence[Path], format: str, baseline: str | None, control: LengthControl) -> dict[str, Any]:
    """Of files of one format; `format` auto is that of the first. Raises the errors of unreadable files, `BadInput`."""
    if format not in _FORMATS:
        raise BadInput(
            f"there is no format {format!r}", code="invalid_request", hint=f"It is one of {', '.join(_FORMATS)}."
        )
    if control.gamed is not None and control.difficulty is None:
        raise BadInput(
            "the gamed baselines come with difficulties, and there are none for the prompts",
            code="missing_input",
            hint="Give --difficulty too.",
        )
    found, bad = _format(paths, format), Bad()
    if found == "rewardbench":
        return {"format": found, **_rewards(paths, bad)}
    if found == "alpaca_eval":
        answer = _alpaca_eval(paths, control, bad)
    elif found == "vicuna_review":
        answer = {"files": [{"file": path.name, **judgments.reviews(_rows(path, found, bad))} for path in paths]}
    else:
        rows = [row for path in paths for row in _rows(path, found, bad)]
        answer = {"judges": judgments.judges(rows)}
        if found == "fastchat_pair":
            answer |= judgments.pairs(rows)
        elif found == "arena_hard":
            answer |= judgments.arena(rows, baseline)
        else:
            answer |= judgments.singles(rows)
    return {"format": found, **bad.counted(), **answer}


def _format(paths: Sequence[Path], format: str) -> str:
    if format != "auto":
        return format
    if is_table(paths[0]):
        return "alpaca_eval"
    if rewards.results(paths[0]) is not None:
        return "rewardbench"
    first = next((row for _, row in read_rows(_source(paths[0])) if not isinstance(row, Problem)), None)
    return (
        "rewardbench"
        if first is not None and rewards.is_pair(first)
        else expect(_source(paths[0]), "judgments", format)
    )


def _rewards(paths: Sequence[Path], bad: Bad) -> dict[str, Any]:
    documents = [rewards.results(path) for path in paths]
    if documents[0] is not None:
        if len(documents) > 1:
            raise BadInput("a RewardBench results file is read alone", code="invalid_request", hint="Give one file.")
        return rewards.sections(documents[0])
    pairs = []
    for path in paths:
        for where, row in _read(path, bad):
            if isinstance(row, Problem):
                bad.add(where, row.reason)
                continue
            try:
                pairs.append(rewards.pair(row))
            except Unreadable as error:
                bad.add(where, str(error))
    if not pairs:
        raise WrongFileType(
            f"{paths[0].name} has no row of a subset with two rewards", hint="See docs/evaluation.md for the fields."
        )
    return {**bad.counted(), **rewards.of_pairs(pairs)}


def _alpaca_eval(paths: Sequence[Path], control: LengthControl, bad: Bad) -> dict[str, Any]:
    annotations = Annotations()
    for path in paths:
        annotations.next_file()
        for where, row in _read(path, bad):
            try:
                if isinstance(row, Problem):
                    annotations.lost(where)
                    raise Unreadable(row.reason)
                annotations.add(row, where)
            except Unreadable as error:
                bad.add(where, str(error))
    return {"judges": annotations.judges, "models": annotations.figures(control)}


def _rows(path: Path, format: str, bad: Bad) -> list[judgments.Row]:
    found = []
    for line, row in read(_source(path), JUDGMENTS[format]):
        bad.rows += 1
        if isinstance(row, Problem):
            bad.add(f"{path.name}, line {line}", row.reason)
        else:
            found.append(row)
    return found


def _read(path: Path, bad: Bad) -> Iterator[tuple[str, Mapping[str, Any] | Problem]]:
    """(where, row) of JSON or of a table."""
    rows: Iterator[tuple[int, Mapping[str, Any] | Problem]] = (
        iter(table(path, "preference")) if is_table(path) else read_rows(_source(path))
    )
    for line, row in rows:
        bad.rows += 1
        yield f"{path.name}, line {line}", row


def _source(path: Path) -> Source:
    return Source(path.name, lambda: path.open("rb"))
