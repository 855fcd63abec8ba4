"""The report on a terminal: which method won, by how much, at what cost."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from steerboard.cli.verdict import METHOD_NAMES, SHORT_NAMES, best_rows, checks, cost_line, verdict
from steerboard_contracts.report import Report

WIDE, MEDIUM = 100, 70
EXAMPLE_SCORES = (5.0, 0.0, -5.0)
EXAMPLE_CHARACTERS = 400


def print_report(console: Console, report: Report, title: str, examples: bool | None = None) -> None:
    """Write the whole report. `examples`: show answers; by default only those of synthetic data, since real
    preference data holds texts that not everybody wants on their screen."""
    heading = Text(title, style="bold")
    if report.synthetic:
        heading.append("  synthetic demo data: these figures say nothing about real models", style="yellow")
    console.print()
    console.print(heading)
    if report.methods:
        console.print(_methods_table(report, console.width))
    for part in _below(report):
        console.print(part)
    if report.examples and (report.synthetic if examples is None else examples):
        console.print(_example(report, console.width))
    for warning in report.warnings:
        console.print(Text(f"Warning: {warning}", style="yellow"))


def print_stages(console: Console, report: Report) -> None:
    """What every stage took."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("stage")
    table.add_column("state")
    table.add_column("seconds", justify="right")
    table.add_column("device-seconds", justify="right")
    for stage in report.stages:
        status = "reused" if stage.reused else stage.status
        style = {"succeeded": "green", "failed": "red", "cancelled": "yellow"}.get(stage.status, "")
        table.add_row(stage.name, Text(status, style), f"{stage.seconds:.1f}", f"{stage.device_seconds:.1f}")
    console.print(table)


def _methods_table(report: Report, width: int) -> Table:
    """As many columns as fit: short words below 100 characters, the independent judge left out below 70."""
    wide, tiny = width >= WIDE, width < MEDIUM
    independent = not tiny and any(row.independent_win_rate_vs_sft is not None for row in report.methods)
    quality = any(row.quality_mean is not None for row in report.methods)
    table = Table(box=None, pad_edge=False, padding=(0, 1 if tiny else 2, 0, 0), header_style="bold")
    table.add_column("method", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("reward (z) [95% interval]" if wide else "reward [95%]", justify="right")
    table.add_column("length", justify="right", no_wrap=True)
    table.add_column("wins against SFT" if wide else "win", justify="right", no_wrap=True)
    if independent:
        table.add_column("by independent judge" if wide else "indep.", justify="right", no_wrap=True)
    if quality:
        table.add_column("known quality" if wide else "quality", justify="right", no_wrap=True)
    table.add_column("device-seconds" if wide else "dev-s", justify="right", no_wrap=True)
    best = best_rows(report)
    for row in report.methods:
        # Non-breaking inside the interval: it moves to a line of its own as a whole.
        interval = f"[{row.reward_low:.2f},\u00a0{row.reward_high:.2f}]"
        cells = [
            (METHOD_NAMES if wide else SHORT_NAMES).get(row.method, row.method),
            "" if row.score is None else f"{row.score:.1f}",
            f"{row.reward_mean:.2f} {interval}",
            f"{row.length_mean:.0f}",
            _percent(row.win_rate_vs_sft),
        ]
        if independent:
            cells.append(_percent(row.independent_win_rate_vs_sft))
        if quality:
            cells.append("" if row.quality_mean is None else f"{row.quality_mean:.2f}")
        cells.append(f"{row.device_seconds:.1f}")
        table.add_row(*cells, style="bold" if row is best[0] else "")
    return table


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.0f}%"


def _below(report: Report) -> Iterator[RenderableType]:
    if report.methods:
        words = f"Rewards are z units of the labelled data, over {report.prompts} held-out prompts."
        if any(row.win_rate_vs_sft is not None for row in report.methods):
            words += " A tie is half a win."
        yield Text(words, style="dim")
        yield ""
        yield Text(verdict(report), style="bold")
        yield Text(cost_line(report))
    yield _reward_model(report)
    if report.control is not None and report.control.requested:
        yield from _control(report)
    found = checks(report)
    if found:
        grid = Table.grid(padding=(0, 2, 0, 0))
        for words, met in found:
            grid.add_row(Text("met", "green") if met else Text("not met", "red"), words)
        yield grid


def _reward_model(report: Report) -> RenderableType:
    judge = report.reward_model
    if judge.held_out_accuracy is None:
        return Text("Reward model: no held-out pairs to check it on.") if report.methods else Group()
    words = f"Reward model: {100 * judge.held_out_accuracy:.1f}% of {judge.pairs} held-out pairs right"
    if judge.independent_held_out_accuracy is not None:
        words += (
            f"; the independent one {100 * judge.independent_held_out_accuracy:.1f}% of {judge.independent_pairs or 0}"
        )
    return Text(words + ".")


def _control(report: Report) -> Iterator[RenderableType]:
    control = report.control
    assert control is not None
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column()
    for _ in control.requested:
        table.add_column(justify="right")
    table.add_row("requested score", *(f"{value:.1f}" for value in control.requested))
    table.add_row("achieved reward", *(f"{value:.2f}" for value in control.achieved))
    yield ""
    yield table
    if control.spearman is not None:
        yield Text(f"Spearman of requested and achieved: {control.spearman:.2f}")


def _example(report: Report, width: int) -> RenderableType:
    """The answers at 5.0, 0 and -5.0 to the first prompt that has them."""
    example = report.examples[0]
    answers = [answer for score in EXAMPLE_SCORES for answer in example.answers if answer.get("score") == score]
    if not answers:
        answers = example.answers
    body = Text()
    for answer in answers:
        score = answer.get("score")
        label = f"<rm_score> {score:.2f}" if isinstance(score, int | float) else str(answer.get("entrant", "answer"))
        text = " ".join(str(answer.get("text", "")).split())
        cut = text if len(text) <= EXAMPLE_CHARACTERS else text[: EXAMPLE_CHARACTERS - 3] + "..."
        body.append(f"\n{label}\n", style="bold").append(cut or "(nothing)").append("\n")
    words = " (synthetic)" if report.synthetic else ""
    prompt = Text(f"{example.prompt}{words}", style="italic")
    return Panel(Group(prompt, body), title="One prompt, one model, three scores", width=min(width, 110))
