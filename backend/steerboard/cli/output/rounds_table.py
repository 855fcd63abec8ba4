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
    selection, answers = row.selection, row.answers
    missing = "" if row.state == "skipped" else NOT_MEASURED
    return (
        row.number,
        row.state,
        f"{selection.kept_groups}/{selection.groups}" if selection else missing,
        _dropped(selection) if selection else "",
        _rewards(selection) if selection else missing,
        f"{selection.characters:.0f}" if selection and selection.characters is not None else missing,
        f"{answers.reward.in_words(_short)} {answers.units}" if answers else missing,
        _win_rate(answers.against_previous if answers else None) or missing,
        _win_rate(answers.against_start if answers else None) or missing,
        f"{row.cost.device_seconds:.1f}",
        "" if row.cost.sampled_tokens is None else f"{row.cost.sampled_tokens:,}",
        "" if row.cost.trained_tokens is None else f"{row.cost.trained_tokens:,}",
        (row.policy.name + (" (in production)" if row.policy.in_production else "")) if row.policy else "",
    )


def _rewards(selection: RoundSelection) -> str:
    """`0.2, 0.9`, with the unit where it is not that of the rewards themselves."""
    unit = "" if selection.units == "raw" else f" {selection.units.replace('_', ' ')}"
    return f"{_short(selection.mean.value)}, {_short(selection.best.value)}{unit}"


def _dropped(selection: RoundSelection) -> str:
    """`2 tied, 1 single`."""
    counts = {
        "tied": selection.dropped.tied,
        "of equal texts": selection.dropped.equal_texts,
        "single": selection.dropped.single,
    }
    return ", ".join(f"{number} {why}" for why, number in counts.items() if number) or "0"


def _win_rate(win_rate: Estimate | None) -> str:
    if win_rate is None or win_rate.value is None:
        return ""
    return f"{win_rate.in_words('{:.0%}'.format)} of {win_rate.n}"


def _short(value: float | None) -> str:
    return "" if value is None else short(value, 3)
