"""A sweep on a terminal: its variants with their figures, the best first to look at."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from steerboard.cli.output.listing import Column, print_table
from steerboard.cli.output.numbers import short
from steerboard.cli.output.progress import STYLES
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.sweep import SweepReport, VariantRow


def print_sweep(console: Console, report: SweepReport) -> None:
    """The variants by number, then the finding in a sentence."""
    unit = f" ({report.units})" if report.units else ""
    columns = (
        Column("variant", right=True),
        *(Column(name, right=True) for name in report.fields),
        Column("state", styles=STYLES, drop=3),
        *([Column("rungs", drop=5)] if report.halving else []),
        Column(f"figure{unit} [95% interval]", right=True),
        Column("behind the best", right=True, drop=2),
        Column("standing", drop=1),
        Column("device-seconds", right=True, drop=4),
    )
    rows = [
        (
            row.number,
            *(_value(row.values.get(name)) for name in report.fields),
            row.state,
            *([_rungs(row)] if report.halving else []),
            _estimate(row.figure),
            _estimate(row.behind),
            _standing(report, row),
            f"{row.device_seconds:.1f}",
        )
        for row in report.variants
    ]
    best = next((place for place, row in enumerate(report.variants) if row.number == report.best), None)
    print_table(console, columns, rows, heading=True, bold=best)
    console.print()
    console.print(Text(report.verdict, style="bold"))
    if report.halving:
        console.print(Text(report.halving))
    for note in report.notes:
        console.print(Text(note, style="dim"))


def _standing(report: SweepReport, row: VariantRow) -> str:
    if row.number == report.best:
        return "best"
    if row.dropped_after is not None:
        return f"dropped after rung {row.dropped_after}" + (", within noise" if row.dropped_within_noise else "")
    return "within noise" if row.within_noise else ""


def _rungs(row: VariantRow) -> str:
    """The figure of each: `0.61 0.64`."""
    return " ".join("–" if rung.figure is None else short(rung.figure, 3) for rung in row.rungs)


def _value(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _estimate(estimate: Estimate | None) -> str:
    return "" if estimate is None else estimate.in_words(lambda value: short(value, 3))
