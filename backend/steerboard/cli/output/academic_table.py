"""Academic benchmarks on a terminal: a line for each figure, and why some are not compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from rich.console import Console
from rich.text import Text

from steerboard.cli.output.listing import Column, print_table
from steerboard.cli.output.numbers import short
from steerboard_contracts.models import Ancestor
from steerboard_contracts.report.academic import AcademicRow

_COLUMNS = (
    Column("figure"),
    Column("value", right=True),
    Column("stderr", drop=2, right=True),
    *(Column(f"vs {ancestor}", drop=1, right=True) for ancestor in get_args(Ancestor)),
    Column("items", drop=3, right=True),
    Column("shots", drop=4, right=True),
    Column("version", drop=5, right=True),
    Column("template", lambda used: "yes" if used else "no", drop=6),
)


def print_academic(console: Console, rows: Sequence[AcademicRow]) -> None:
    lines = [
        (
            f"{row.task.task}.{figure.name}",
            short(figure.value, 3),
            None if figure.stderr is None else short(figure.stderr, 2),
            *(_gain(row, figure.name, ancestor) for ancestor in get_args(Ancestor)),
            f"{row.task.items:,}" if row.task.whole else f"{row.task.items:,} of {row.task.of:,}",
            row.task.shots,
            row.task.version,
            row.task.template,
        )
        for row in rows
        for figure in row.task.figures
    ]
    print_table(console, _COLUMNS, lines)
    for row in rows:
        for comparison in row.not_compared:
            console.print(
                Text(
                    f"{row.task.task} is not compared with {comparison.vs} {comparison.model}: {comparison.words}",
                    style="dim",
                )
            )


def _gain(row: AcademicRow, figure: str, vs: Ancestor) -> str | None:
    gain = next((gain.difference for gain in row.differences if (gain.vs, gain.figure) == (vs, figure)), None)
    return None if gain is None or gain.value is None else gain.in_words("{:+.3f}".format)
