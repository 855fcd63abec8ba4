"""Academic benchmarks on a terminal."""

from __future__ import annotations

import datetime as dt
import io
import uuid
from typing import Any

from rich.console import Console

from steerboard.cli.output.academic_table import print_academic
from steerboard_contracts.report.academic import (
    AcademicDifference,
    AcademicFigure,
    AcademicMismatch,
    AcademicRow,
    AcademicTask,
)
from steerboard_contracts.report.estimate import Estimate


def row(items: int = 1319, **fields: Any) -> AcademicRow:
    figure = AcademicFigure(name="strict", metric="exact_match", filter="strict-match", value=0.5123, stderr=0.0137)
    task = AcademicTask(
        task="gsm8k", version="3.0", shots=8, template=False, items=items, of=1319, items_hash="x", figures=[figure]
    )
    return AcademicRow(run_id=uuid.uuid4(), ended_at=dt.datetime.now(dt.UTC), harness="0.4.13", task=task, **fields)


def printed(line: AcademicRow) -> list[str]:
    text = io.StringIO()
    print_academic(Console(file=text, width=160, force_terminal=True, color_system=None), [line])
    return text.getvalue().splitlines()


def test_a_line_has_the_figure_how_it_was_asked_and_what_was_gained() -> None:
    difference = Estimate(value=0.05, low=-0.01, high=0.11, n=1319)
    gained = AcademicDifference(
        vs="sft", model="ours", run_id=uuid.uuid4(), figure="strict", theirs=0.46, difference=difference
    )
    (line,) = [line for line in printed(row(differences=[gained])) if "gsm8k.strict" in line]
    words = line.split()
    assert {"0.512", "1,319", "8", "3.0", "+0.050", "no"} <= set(words), line
    assert "[-0.010, +0.110]" in line


def test_it_says_that_only_some_items_were_answered_and_why_there_is_no_difference() -> None:
    unlike = AcademicMismatch(vs="sft", model="ours", run_id=uuid.uuid4(), unlike=["shots", "scoring"])
    lines = printed(row(items=20, not_compared=[unlike]))
    assert any("gsm8k.strict" in line and "20 of 1,319" in line for line in lines)
    why = "gsm8k is not compared with sft ours: another number of shots, other filters or metrics"
    assert any(why in line for line in lines), lines
