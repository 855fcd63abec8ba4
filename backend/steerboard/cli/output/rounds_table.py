"""The rounds of a pipeline on a terminal: one row a round, then the outcome in a sentence."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from steerboard.cli.output.listing import Column, print_table
from steerboard.cli.output.numbers import short
from steerboard.cli.output.progress import STYLES
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.rounds import RoundRow, RoundSelection, RoundsReport

NOT_MEASURED = "not measured"


def print_rounds(console: Console, report: RoundsReport) -> None:
    """Rounds by number; what has no figure yet, or never, is not measured."""
    columns = (
        Column("round", right=True),
        Column("state", styles=STYLES, drop=5),
        Column("kept", right=True),
        Column("dropped", drop=3),
        Column("reward, best", right=True, drop=4),
        Column("characters", right=True, drop=7),
        Column("judge's reward", right=True, drop=6),
        Column("against previous [95% interval]", right=True),
        Column(f"against {report.start}", right=True, drop=2),
        Column("device-seconds", right=True, drop=8),
        Column("tokens sampled", right=True, drop=9),
        Column("tokens trained", right=True, drop=10),
        Column("policy", drop=1),
    )
    result = next((place for place, row in enumerate(report.rounds) if row.number == report.result), None)
    print_table(console, columns, [_row(row) for row in report.rounds], heading=True, bold=result)
    console.print()
    console.print(Text(report.verdict, style="bold"))
    for note in report.notes:
        console.print(Text(note, style="dim"))


def _row(row: RoundRow) -> tuple[object, ...]:
    found, answers = row.selection, row.answers
    missing = "" if row.state == "skipped" else NOT_MEASURED
    return (
        row.number,
        row.state,
        f"{found.kept_groups}/{found.groups}" if found else missing,
        _dropped(found) if found else "",
        _rewards(found) if found else missing,
        f"{found.characters:.0f}" if found and found.characters is not None else missing,
        f"{_estimate(answers.reward)} {answers.units}" if answers else missing,
        _win_rate(answers.against_previous if answers else None) or missing,
        _win_rate(answers.against_start if answers else None) or missing,
        f"{row.cost.device_seconds:.1f}",
        "" if row.cost.sampled_tokens is None else f"{row.cost.sampled_tokens:,}",
        "" if row.cost.trained_tokens is None else f"{row.cost.trained_tokens:,}",
        (row.policy.name + (" (in production)" if row.policy.in_production else "")) if row.policy else "",
    )


def _rewards(found: RoundSelection) -> str:
    """`0.2, 0.9`, with the unit where it is not that of the rewards themselves."""
    unit = "" if found.units == "raw" else f" {found.units.replace('_', ' ')}"
    return f"{_short(found.mean.value)}, {_short(found.best.value)}{unit}"


def _dropped(found: RoundSelection) -> str:
    """`2 tied, 1 single`."""
    counts = {"tied": found.dropped.tied, "of equal texts": found.dropped.equal_texts, "single": found.dropped.single}
    return ", ".join(f"{number} {why}" for why, number in counts.items() if number) or "0"


def _estimate(found: Estimate) -> str:
    interval = "" if found.low is None or found.high is None else f" [{_short(found.low)}, {_short(found.high)}]"
    return _short(found.value) + interval


def _win_rate(found: Estimate | None) -> str:
    if found is None or found.value is None:
        return ""
    interval = "" if found.low is None or found.high is None else f" [{found.low:.0%}, {found.high:.0%}]"
    return f"{found.value:.0%}{interval} of {found.n}"


def _short(value: float | None) -> str:
    return "" if value is None else short(value, 3)
