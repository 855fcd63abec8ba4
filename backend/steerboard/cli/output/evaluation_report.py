"""The report of an evaluation on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from steerboard.cli.output.academic_table import print_academic
from steerboard.cli.output.listing import Column, print_table
from steerboard.cli.output.numbers import short
from steerboard.cli.output.recipe_section import print_recipe
from steerboard_contracts.methods import label_of
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.evaluation import EvaluationReport
from steerboard_contracts.report.sections.comparison import Comparison
from steerboard_contracts.report.sections.costs import cost_cells
from steerboard_contracts.report.sections.fluency import fluency_cells
from steerboard_contracts.report.sections.headline import Headline

_KINDS = {"human": "People of", "jury": "Jury", "judge": "Judge", "reward": "Reward model"}


def print_evaluation_report(console: Console, report: EvaluationReport, examples: bool | None = None) -> None:
    """Who wins and with which reservations, every source's figures on the entrants, then winners, agreement and
    warnings, and what a recipe adds. Only tables are fitted to the terminal, so that a log of CI can be searched.
    `examples`: as in `print_recipe`."""
    prompts = f"{report.prompts} prompts" + (f" ({report.prompts_from})" if report.prompts_from else "")
    version = f", version {report.version}" if report.version else ""
    heading = Text(f"{report.evaluation or 'Report'}: {prompts}{version}", style="bold")
    if report.recipe is not None and report.recipe.synthetic:
        heading.append("  synthetic demo data: these figures say nothing about real models", style="yellow")
    console.print(heading)
    if report.headline is not None:
        print_headline(console, report.headline)
    _print_answers(console, report)
    for field, kind in _KINDS.items():
        columns = {
            "Mean": field,
            f"Wins vs {report.baseline}": f"{field}_win_rate",
            "length-matched": f"{field}_length_matched",
            "length-adjusted": f"{field}_length_adjusted",
        }
        for source in sorted({source for row in report.methods for source in getattr(row, field)}):
            figures = {
                heading: [(row.entrant, getattr(row, name).get(source)) for row in report.methods]
                for heading, name in columns.items()
            }
            _table(console, f"{kind} {source}", figures)
    for section in report.academic:
        console.print(Text(f"Academic benchmarks of {section.entrant}", style="bold"))
        print_academic(console, section.rows)
    _print_fluency(console, report)
    _print_costs(console, report)
    for label, comparison in _comparisons(report):
        console.print(f"{label}: {comparison.why}", markup=False, soft_wrap=True)
    for row in (row for row in report.agreement if row.item.value is not None or row.spearman.value is not None):
        console.print(
            f"{row.a} and {row.b}: same verdict on {cell_of(row.item)} of pairs, Spearman {cell_of(row.spearman)}",
            markup=False,
            soft_wrap=True,
        )
    for warning in report.warnings:
        console.print(f"! {warning}", markup=False, style="yellow", soft_wrap=True)
    if report.recipe is not None:
        print_recipe(console, report.recipe, examples)


def print_headline(console: Console, headline: Headline) -> None:
    """The verdict with the source that it is by, and the reservations about it."""
    by = "" if headline.by is None else f" (by {_KINDS[headline.by].lower()} {headline.source})"
    whole = not console.is_terminal
    console.print(Text(f"{headline.text}{by}", style="bold"), soft_wrap=whole)
    for reservation in headline.reservations:
        console.print(f"! {reservation.text}", markup=False, style="yellow", soft_wrap=whole)


def _print_answers(console: Console, report: EvaluationReport) -> None:
    console.print(Text("Answers", style="bold"))
    columns = (
        Column("Entrant"),
        Column("Method", drop=2),
        Column("Score asked", right=True, drop=1),
        Column("Characters", right=True),
    )
    rows = [
        (
            row.entrant,
            label_of(row.method, "") if row.method else None,
            None if row.score is None else f"{row.score:.1f}",
            cell_of(row.length),
        )
        for row in report.methods
    ]
    print_table(console, columns, rows, heading=True)


def _table(console: Console, title: str, columns: dict[str, list[tuple[str, Estimate | None]]]) -> None:
    """One row per entrant of whom there is anything to say. `columns`: (entrant, estimate) by heading."""
    console.print(Text(title, style="bold"))
    rows = [
        (cells[0][0], *(cell_of(estimate) if estimate is not None else None for _, estimate in cells))
        for cells in zip(*columns.values(), strict=True)
        if any(estimate is not None for _, estimate in cells)
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
        (row.entrant, *([cell_of(row.perplexity)] if by else []), *fluency_cells(row))
        for row in report.fluency.entrants
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
    print_table(console, columns, [cost_cells(cost) for cost in report.costs], heading=True)


def _comparisons(report: EvaluationReport) -> list[tuple[str, Comparison]]:
    people = [
        (f"People of {table.campaign} {table.criterion or ''}".strip(), table.comparison) for table in report.human
    ]
    juries = [(f"Jury {jury.jury}", jury.comparison) for jury in report.juries]
    judges = [(f"Judge {judge.judge}", judge.comparison) for judge in report.judges]
    return (
        people
        + juries
        + judges
        + [(f"Reward model {reward.reward_model}", reward.comparison) for reward in report.rewards]
    )


def cell_of(estimate: Estimate) -> str:
    """`0.62 [0.51, 0.72]`, `1,284 [1,160, 1,390]`."""
    return estimate.in_words(_figure, none="-")


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else short(value, 3)
