"""Academic benchmarks on a terminal."""

from __future__ import annotations

import datetime as dt
import io
import uuid

from rich.console import Console

from steerboard.cli.output.academic_table import print_academic
from steerboard_contracts.report.academic import AcademicDifference, AcademicFigure, AcademicRow, AcademicTask
from steerboard_contracts.report.estimate import Estimate


def test_a_line_has_the_figure_how_it_was_asked_and_what_was_gained() -> None:
    figure = AcademicFigure(name="strict", metric="exact_match", filter="strict-match", value=0.5123, stderr=0.0137)
    task = AcademicTask(
        task="gsm8k", version="3.0", shots=8, template=False, items=1319, of=1319, items_hash="x", figures=[figure]
    )
    difference = Estimate(value=0.05, low=-0.01, high=0.11, n=1319)
    gained = AcademicDifference(
        vs="sft", model="ours", run_id=uuid.uuid4(), figure="strict", theirs=0.46, difference=difference
    )
    row = AcademicRow(
        run_id=uuid.uuid4(), ended_at=dt.datetime.now(dt.UTC), harness="0.4.13", task=task, differences=[gained]
    )
    text = io.StringIO()
    print_academic(Console(file=text, width=160, force_terminal=True, color_system=None), [row])
    (line,) = [line for line in text.getvalue().splitlines() if "gsm8k.strict" in line]
    words = line.split()
    assert {"0.512", "1,319", "8", "3.0", "+0.050", "no"} <= set(words), line
    assert "[-0.010, +0.110]" in line
