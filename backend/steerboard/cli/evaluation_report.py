"""The report of an evaluation on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from steerboard_contracts.evaluation_report import Comparison, Estimate, EvaluationReport, MethodsRow


def print_evaluation_report(console: Console, report: EvaluationReport) -> None:
    """Methods by source, then winners, agreement and warnings."""
    console.print(f"[bold]{report.evaluation}[/]: {report.prompts} prompts, version {report.version}", highlight=False)
    for kind, row_name in (("people", "human"), ("judges", "judge"), ("reward models", "reward")):
        _methods(console, report, kind, row_name)
    for label, comparison in _comparisons(report):
        console.print(f"{label}: {comparison.why}", markup=False)
    for row in report.agreement:
        console.print(
            f"{row.a} and {row.b}: same verdict on {said(row.item)} of pairs, Spearman {said(row.spearman)}",
            markup=False,
        )
    for warning in report.warnings:
        console.print(f"! {warning}", markup=False, style="yellow")


def _methods(console: Console, report: EvaluationReport, kind: str, field: str) -> None:
    """A table of means and win rates of the sources of one kind; nothing where there are none."""
    sources = sorted({source for row in report.methods for source in getattr(row, field)})
    if not sources:
        return
    table = Table("Entrant", "Characters", box=None, title=f"By {kind}", title_justify="left")
    for source in sources:
        table.add_column(source, justify="right")
        table.add_column(f"wins vs {report.baseline}", justify="right")
    for row in report.methods:
        table.add_row(row.entrant, said(row.length), *_cells(row, field, sources))
    console.print(table)


def _cells(row: MethodsRow, field: str, sources: list[str]) -> list[str]:
    means, rates = getattr(row, field), getattr(row, f"{field}_win_rate")
    return [said(found) if found else "" for source in sources for found in (means.get(source), rates.get(source))]


def _comparisons(report: EvaluationReport) -> list[tuple[str, Comparison]]:
    people = [(f"People of {one.campaign} {one.criterion or ''}".strip(), one.comparison) for one in report.human]
    judges = [(f"Judge {one.judge}", one.comparison) for one in report.judges]
    return people + judges + [(f"Reward model {one.reward_model}", one.comparison) for one in report.rewards]


def said(found: Estimate) -> str:
    """`0.62 [0.51, 0.72]`."""
    if found.value is None:
        return "-"
    ends = "" if found.low is None or found.high is None else f" [{found.low:.3g}, {found.high:.3g}]"
    return f"{found.value:.3g}{ends}"
