"""The report of an evaluation on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from steerboard.cli.output.academic_table import print_academic
from steerboard.cli.output.listing import Column, print_table
from steerboard.cli.output.numbers import short
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.evaluation import EvaluationReport
from steerboard_contracts.report.sections.comparison import Comparison
from steerboard_contracts.report.sections.costs import cost_cells
from steerboard_contracts.report.sections.fluency import fluency_cells
from steerboard_contracts.report.sections.headline import Headline

_KINDS = {"human": "People of", "jury": "Jury", "judge": "Judge", "reward": "Reward model"}


def print_evaluation_report(console: Console, report: EvaluationReport) -> None:
    """Who wins and with which reservations, every source's figures on the entrants, then winners, agreement and
    warnings. Only tables are fitted to the terminal, so that a log of CI can be searched."""
    prompts = f"{report.prompts} prompts" + (f" ({report.prompts_from})" if report.prompts_from else "")
    console.print(Text(f"{report.evaluation}: {prompts}, version {report.version}", style="bold"))
    if report.headline is not None:
        print_headline(console, report.headline)
    _table(console, "Answers", {"Characters": [(row.entrant, row.length) for row in report.methods]})
    for field, kind in _KINDS.items():
        columns = {
            "Mean": field,
            f"Wins vs {report.baseline}": f"{field}_win_rate",
            "at like length": f"{field}_length_matched",
        }
        for source in sorted({source for row in report.methods for source in getattr(row, field)}):
            found = {
                heading: [(row.entrant, getattr(row, name).get(source)) for row in report.methods]
                for heading, name in columns.items()
            }
            _table(console, f"{kind} {source}", found)
    for one in report.academic:
        console.print(Text(f"Academic benchmarks of {one.entrant}", style="bold"))
        print_academic(console, one.rows)
    _print_fluency(console, report)
    _print_costs(console, report)
    for label, comparison in _comparisons(report):
        console.print(f"{label}: {comparison.why}", markup=False, soft_wrap=True)
    for row in (row for row in report.agreement if row.item.value is not None or row.spearman.value is not None):
        console.print(
            f"{row.a} and {row.b}: same verdict on {said(row.item)} of pairs, Spearman {said(row.spearman)}",
            markup=False,
            soft_wrap=True,
        )
    for warning in report.warnings:
        console.print(f"! {warning}", markup=False, style="yellow", soft_wrap=True)


def print_headline(console: Console, found: Headline) -> None:
    """The verdict with the source that it is by, and the reservations about it."""
    by = "" if found.by is None else f" (by {_KINDS[found.by].lower()} {found.source})"
    whole = not console.is_terminal
    console.print(Text(f"{found.text}{by}", style="bold"), soft_wrap=whole)
    for one in found.reservations:
        console.print(f"! {one.text}", markup=False, style="yellow", soft_wrap=whole)


def _table(console: Console, title: str, columns: dict[str, list[tuple[str, Estimate | None]]]) -> None:
    """One row per entrant of whom there is anything to say. `columns`: (entrant, estimate) by heading."""
    console.print(Text(title, style="bold"))
    rows = [
        (cells[0][0], *(said(found) if found is not None else None for _, found in cells))
        for cells in zip(*columns.values(), strict=True)
        if any(found is not None for _, found in cells)
    ]
    shown = [Column("Entrant"), *(Column(heading, right=True) for heading in columns)]
    print_table(console, shown, rows, heading=True)


def _print_fluency(console: Console, report: EvaluationReport) -> None:
    if report.fluency is None or not report.fluency.entrants:
        return
    by = report.fluency.perplexity_by
    console.print(Text(f"Fluency, perplexity under {by}" if by else "Fluency", style="bold"), soft_wrap=True)
    columns = (
        Column("Entrant"),
        *([Column("Perplexity", right=True)] if by else []),
        Column("Distinct-1", right=True, drop=2),
        Column("Distinct-2", right=True, drop=1),
        *(Column(heading, right=True) for heading in ("Empty", "Repeated", "Cut", "Tokens")),
    )
    rows = [
        (row.entrant, *([said(row.perplexity)] if by else []), *fluency_cells(row)) for row in report.fluency.entrants
    ]
    print_table(console, columns, rows, heading=True)


def _print_costs(console: Console, report: EvaluationReport) -> None:
    if not report.costs:
        return
    console.print(Text("Device-seconds", style="bold"))
    columns = (
        Column("Entrant"),
        Column("Own run", right=True),
        Column("With all it needs", right=True),
        Column("of it shared", right=True, drop=2),
        Column("Shared runs", drop=1),
    )
    print_table(console, columns, [cost_cells(one) for one in report.costs], heading=True)


def _comparisons(report: EvaluationReport) -> list[tuple[str, Comparison]]:
    people = [(f"People of {one.campaign} {one.criterion or ''}".strip(), one.comparison) for one in report.human]
    juries = [(f"Jury {one.jury}", one.comparison) for one in report.juries]
    judges = [(f"Judge {one.judge}", one.comparison) for one in report.judges]
    return people + juries + judges + [(f"Reward model {one.reward_model}", one.comparison) for one in report.rewards]


def said(found: Estimate) -> str:
    """`0.62 [0.51, 0.72]`, `1,284 [1,160, 1,390]`."""
    if found.value is None:
        return "-"
    ends = "" if found.low is None or found.high is None else f" [{_figure(found.low)}, {_figure(found.high)}]"
    return f"{_figure(found.value)}{ends}"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else short(value, 3)
