"""The report of a pipeline on a terminal: the evaluation's verdict, every method's figures, and what it cost."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from steerboard.cli.output.console import condition_label
from steerboard.cli.output.evaluation_report import print_headline
from steerboard.cli.output.listing import Column, print_table
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.methods import label_of, short_label_of
from steerboard_contracts.report.pipeline import Control, Example, MethodRow, Report
from steerboard_contracts.report.summary import baseline_of, device_seconds, summarise

WIDE = 100
EXAMPLE_SCORES = (5.0, 0.0, -5.0)
EXAMPLE_CHARACTERS = 400


def print_report(console: Console, report: Report, title: str, examples: bool | None = None) -> None:
    """Write the whole report. `examples`: show answers; by default only those of synthetic data, since real
    preference data holds texts that not everyone wants on their screen."""
    heading = Text(title, style="bold")
    if report.synthetic:
        heading.append("  synthetic demo data: these figures say nothing about real models", style="yellow")
    console.print()
    console.print(heading)
    if report.methods:
        _print_methods(console, report)
        console.print(Text(_units(report), style="dim"))
    if summary := summarise(report):
        console.print()
        if report.headline is not None:
            print_headline(console, report.headline)
        else:
            console.print(Text(summary.verdict, style="bold"))
        if summary.cost:
            console.print(Text(summary.cost))
    console.print(_reward_model(report))
    if report.control is not None and report.control.requested:
        _print_control(console, report.control)
    _print_checks(console, report)
    for line in report.training:
        console.print(Text(line))
    if report.examples and (report.synthetic if examples is None else examples):
        console.print(_example(report, console))
    for warning in report.warnings:
        console.print(Text(f"Warning: {warning}", style="yellow"))


def print_stages(console: Console, report: Report) -> None:
    """What every stage took."""
    styles = {"succeeded": "green", "failed": "red", "cancelled": "yellow", "skipped": "dim", "paused": "yellow"}
    columns = (
        Column("stage"),
        Column("state", styles=styles),
        Column("seconds", right=True, drop=1),
        Column("device-seconds", right=True, drop=2),
    )
    rows = [
        (stage.name, "reused" if stage.reused else stage.status, f"{stage.seconds:.1f}", f"{stage.device_seconds:.1f}")
        for stage in report.stages
    ]
    print_table(console, columns, rows, heading=True)


def _print_methods(console: Console, report: Report) -> None:
    """With short words on a terminal below 100 characters."""
    wide = console.width >= WIDE or not console.is_terminal
    baseline = baseline_of(report.methods) or "the baseline"
    independent = report.reward_model.independent_name or "independent"
    columns = (
        Column("method"),
        Column("score", right=True),
        Column(f"reward ({report.units}) [95% interval]" if wide else "reward [95%]", right=True),
        Column("length", right=True, drop=3),
        Column(f"wins against {baseline}" if wide else "win", right=True, drop=1),
        Column(f"by {independent}" if wide else "indep.", right=True, drop=5),
        *([Column(f"by {report.judge}" if wide else "judge", right=True, drop=5)] if report.judge else []),
        Column("known quality" if wide else "quality", right=True, drop=4),
        Column("device-seconds, own run / all" if wide else "dev-s", right=True, drop=2),
    )
    rows = [
        (
            (label_of(row.method) if wide else short_label_of(row.method))
            + (f" ({row.variant})" if row.variant else "")
            + ("" if row.best_of is None else f", best of {row.best_of}"),
            None if row.score is None else f"{row.score:.1f}",
            _reward(row),
            f"{row.length_mean:.0f}",
            _percent(row.win_rate_vs_baseline),
            _percent(row.independent_win_rate_vs_baseline),
            *([_percent(row.judge_win_rate_vs_baseline)] if report.judge else []),
            None if row.quality_mean is None else f"{row.quality_mean:.2f}",
            device_seconds(row),
        )
        for row in report.methods
    ]
    winner = report.headline.winner if report.headline is not None else None
    bold = next((place for place, row in enumerate(report.methods) if winner and row.name == winner), None)
    print_table(console, columns, rows, heading=True, bold=bold)


def _reward(row: MethodRow) -> str:
    if row.reward_low is None or row.reward_high is None:
        return f"{row.reward_mean:.2f}"
    return f"{row.reward_mean:.2f} [{row.reward_low:.2f}, {row.reward_high:.2f}]"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.0f}%"


def _units(report: Report) -> str:
    units = f"z units of {report.units_of}" if report.units == "z" else "raw"
    words = f"Rewards are {units}, over {report.prompts} held-out prompts."
    if any(row.win_rate_vs_baseline is not None for row in report.methods):
        words += " A tie is half a win."
    return words


def _reward_model(report: Report) -> RenderableType:
    model = report.reward_model
    if model.held_out_accuracy is None:
        return Text("Reward model: no held-out pairs to check it on.") if report.methods else Group()
    name = "Reward model" if model.name is None else f"Reward model {model.name}"
    words = f"{name}: {100 * model.held_out_accuracy:.1f}% of {model.pairs} held-out pairs right"
    if model.independent_held_out_accuracy is not None:
        other = "the other one" if model.independent_name is None else f"{model.independent_name}, the independent one"
        words += f"; {other}: {100 * model.independent_held_out_accuracy:.1f}% of {model.independent_pairs or 0}"
    return Text(words + ".")


def _print_control(console: Console, control: Control) -> None:
    console.print()
    columns = (Column("requested score", right=True), Column("achieved reward", right=True))
    pairs = zip(control.requested, control.achieved, strict=True)
    rows = [(f"{asked:.1f}", f"{achieved:.2f}") for asked, achieved in pairs]
    print_table(console, columns, rows, heading=True)
    if control.spearman is not None:
        console.print(f"Spearman of requested and achieved: {control.spearman:.2f}")


def _print_checks(console: Console, report: Report) -> None:
    summary = summarise(report)
    for check in summary.checks if summary else ():
        console.print(Text.assemble(("met      ", "green") if check.met else ("not met  ", "red"), check.text))


def _example(report: Report, console: Console) -> RenderableType:
    """The answers of one model at 5.0, 0 and -5.0 to the first prompt; of a report without such a model all answers."""
    example = report.examples[0]
    model, answers = _three_scores(example)
    if model is not None:
        title = f"One prompt, {model}, three scores"
        labels = [condition_label(answer["score"]) for answer in answers]
    else:
        title = f"One prompt, {len(answers)} answer{'s' * (len(answers) != 1)}"
        labels = [_whose(answer) for answer in answers]
    body = Text()
    for label, answer in zip(labels, answers, strict=True):
        text = " ".join(str(answer.get("text", "")).split())
        cut = text if len(text) <= EXAMPLE_CHARACTERS else text[: EXAMPLE_CHARACTERS - 3] + "..."
        body.append(f"\n{label}\n", style="bold").append(cut or "(nothing)").append("\n")
    words = " (synthetic)" if report.synthetic else ""
    prompt = Text(f"{example.prompt}{words}", style="italic")
    if not console.is_terminal:
        return Text.assemble(title, "\n", prompt, body)
    return Panel(Group(prompt, body), title=Text(title), width=min(console.width, 110))


def _three_scores(example: Example) -> tuple[str | None, list[dict[str, Any]]]:
    """The first model that answered at each of `EXAMPLE_SCORES`, with these answers; otherwise None and all answers."""
    by_model: dict[tuple[str, Any], dict[Any, dict[str, Any]]] = defaultdict(dict)
    for answer in example.answers:
        by_model[str(answer.get("entrant")), answer.get("best_of")].setdefault(answer.get("score"), answer)
    for (model, _), answers in by_model.items():
        if all(score in answers for score in EXAMPLE_SCORES):
            return model, [answers[score] for score in EXAMPLE_SCORES]
    return None, example.answers


def _whose(answer: dict[str, Any]) -> str:
    """The entrant; in reports of earlier versions, which did not keep it, the model and the score."""
    if answer.get("name"):
        return str(answer["name"])
    score = answer.get("score")
    name = str(answer.get("entrant", "answer"))
    return name if score in (None, "") else f"{name} at {Condition.model_validate(score):.1f}"
