"""The bad rows of an import: the first thousand in full, all of them counted by reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from steerboard.datasets.errors import RowsRefused
from steerboard.datasets.schemas import BadRowReport
from steerboard_contracts.errors import ErrorLocation
from steerboard_contracts.wording import counted
from steerboard_files.records import Problem

KEPT = 1000
_REASONS = 200
_SHOWN = 3
_HINT = "Fix these rows, or leave them out with --bad-rows skip (bad_rows=skip). Nothing was imported."
_TURN = re.compile(r"\bprompt\.\d+\.")
_FIGURES = re.compile(r"\d[\d,.]*")


class BadRowLog:
    """`each` is called with every bad row, also with those that are only counted here."""

    def __init__(self, each: Callable[[BadRowReport], None] | None = None) -> None:
        self._each = each
        self.kept: list[BadRowReport] = []
        self.counts: Counter[str] = Counter()
        self.codes: Counter[str] = Counter()
        self.total = 0

    def add(self, line: int, problem: Problem, file: str | None) -> None:
        self.total += 1
        self.codes[problem.code] += 1
        if self._each or len(self.kept) < KEPT:
            report = BadRowReport(line=line, code=problem.code, reason=problem.reason, file=file)
            if len(self.kept) < KEPT:
                self.kept.append(report)
            if self._each:
                self._each(report)
        # Turn numbers and positions would make every reason its own; a hostile file must not grow this table.
        reason = _FIGURES.sub("N", _TURN.sub("prompt.N.", problem.reason))
        self.counts[reason if reason in self.counts or len(self.counts) < _REASONS else "other reasons"] += 1

    @property
    def words(self) -> str:
        """`2 bad rows: prompt: is empty (2)`, the commonest reasons only; empty where there are none."""
        reasons = ", ".join(f"{reason} ({count:,})" for reason, count in self.counts.most_common(_SHOWN))
        return f"{counted(self.total, 'bad row')}: {reasons}" if self.total else ""

    def refusal(self, unit: str, read: int, hint: str = _HINT) -> RowsRefused:
        """The error for a refused import. Its code is that of the rows when they share one, else `bad_row`."""
        first = self.kept[0]
        where = f"{unit} {first.line}" + (f" of {first.file}" if first.file else "")
        detail = (
            f"{where} {first.reason}"
            if self.total == 1
            else (f"{self.total:,} of {read:,} rows cannot be used; the first is {where}: {first.reason}")
        )
        return RowsRefused(
            detail,
            code=next(iter(self.codes)) if len(self.codes) == 1 else "bad_row",
            hint=hint,
            errors=[
                ErrorLocation(
                    location=f"{unit} {bad.line}" + (f" of {bad.file}" if bad.file else ""), message=bad.reason
                )
                for bad in self.kept
            ],
            extra={"bad_rows": self.total, "bad_counts": dict(self.counts.most_common())},
        )
