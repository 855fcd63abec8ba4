"""Rows of an import that are left out: all counted, the first of them named."""

from __future__ import annotations

from pydantic import BaseModel

from steerboard.datasets.errors import RowsRefused
from steerboard.datasets.parsing.bad_rows import BadRowLog
from steerboard.datasets.schemas import BadRows
from steerboard_contracts.errors import BadInput
from steerboard_files.records import Problem

SKIPPED_SHOWN = 100


class NothingMatches(BadInput):
    """No row of the file is about a prompt and an entrant of the evaluation."""

    code = "nothing_matches"
    title = "The file does not match the evaluation"


class LeftOut:
    """`bad`: rows that could not be read, `unmatched`: rows that are about no prompt or entrant of the evaluation."""

    def __init__(self) -> None:
        self.bad = BadRowLog()
        self.unmatched: list[Unmatched] = []
        self.unmatched_rows = 0

    def unreadable(self, line: int, problem: Problem) -> None:
        self.bad.add(line, problem, None)

    def no_match(self, line: int, model: str | None, question_id: str | None, reason: str) -> None:
        self.unmatched_rows += 1
        if len(self.unmatched) < UNMATCHED_SHOWN:
            self.unmatched.append(Unmatched(line=line, model=model, question_id=question_id, reason=reason))

    def refuse_bad(self, bad_rows: BadRows, rows: int) -> None:
        """Raises `RowsRefused` where rows are bad and the caller has not asked to leave them out."""
        if self.bad.total and bad_rows == "refuse":
            raise self.bad.refusal("line", rows)

    def refuse_nothing(self, label: str, matched: int, hint: str) -> None:
        """Raises `RowsRefused`, or `NothingMatches` with the `hint`, where nothing is left."""
        if matched:
            return
        if self.unmatched:
            first = self.unmatched[0]
            raise NothingMatches(
                f"none of the {self.unmatched_rows:,} rows of {label} belongs here; line {first.line} {first.reason}",
                hint=hint,
            )
        if self.bad.total:
            raise self.bad.refusal("line", self.bad.total, hint="No row is left. Is it the right file and format?")
        raise RowsRefused(f"{label} has no rows")


UNMATCHED_SHOWN = 100


class Unmatched(BaseModel):
    """A row that was left out, and why."""

    line: int
    model: str | None
    question_id: str | None
    reason: str
