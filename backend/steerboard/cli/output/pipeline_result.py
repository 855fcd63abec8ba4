"""The end of a pipeline on the command line: progress, report, reasons of failure, exit status."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import orjson
import typer
from rich.console import Console
from rich.text import Text

from steerboard.cli.client import Client, ServerUnreachable, print_error
from steerboard.cli.files import write_whole
from steerboard.cli.output.console import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_UNREACHABLE, print_json
from steerboard.cli.output.evaluation_report import print_evaluation_report
from steerboard.cli.output.progress import display_for
from steerboard.cli.output.rounds_table import print_rounds
from steerboard.cli.output.run_rows import run_name
from steerboard.cli.output.stage_table import print_stages
from steerboard.cli.output.sweep_table import print_sweep
from steerboard.cli.output.watch import follow
from steerboard_contracts.report.pipeline import PipelineReport
from steerboard_contracts.report.rounds import RoundsReport
from steerboard_contracts.report.sweep import SweepReport


def finish(
    client: Client,
    console: Console,
    pipeline: dict[str, Any],
    *,
    json: bool,
    report_path: Path | None,
    examples: bool | None,
) -> PipelineReport:
    """Follow a pipeline to its end, print or write its report, and exit unless every stage succeeded."""
    name = pipeline["name"]
    try:
        runs = follow(client, lambda: client.get(f"pipelines/{pipeline['id']}")["runs"], display_for(console))
    except KeyboardInterrupt:
        console.print(f"\n{name} is still running. To cancel it: steerboard pipelines cancel {name}", markup=False)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except ServerUnreachable as error:
        print_error(error)
        console.print(f"{name} continues as soon as the server is back.", markup=False)
        raise typer.Exit(EXIT_UNREACHABLE) from None
    document = client.get(f"pipelines/{pipeline['id']}/report")
    report = PipelineReport.model_validate(document)
    # What a pipeline compares beyond its last evaluation.
    for part in ("sweep", "rounds"):
        if pipeline["settings"].get(part):
            document[part] = client.get(f"pipelines/{pipeline['id']}/{part}")
    if report_path is not None:
        write_whole(report_path, orjson.dumps(document, option=orjson.OPT_INDENT_2))
    if json:
        print_json(document)
    else:
        console.print()
        console.print(Text(name, style="bold"))
        print_report(console, report, examples)
        if "sweep" in document:
            console.print()
            print_sweep(console, SweepReport.model_validate(document["sweep"]))
        if "rounds" in document:
            console.print()
            print_rounds(console, RoundsReport.model_validate(document["rounds"]))
    broken = [run for run in runs if run["state"] not in ("succeeded", "skipped")]
    for run in broken:
        _explain(client, run)
    if broken:
        print(f"{name}: {len(broken)} of {len(runs)} stages did not succeed.", file=sys.stderr)
        print(f"To resume them: steerboard pipelines resume {name}", file=sys.stderr)
        raise typer.Exit(EXIT_FAILED)
    return report


def print_report(console: Console, report: PipelineReport, examples: bool | None) -> None:
    """What the stages took, the report that the evaluation's stage kept, and what the other runs warn of."""
    print_stages(console, report.stages)
    console.print()
    kept = []
    if report.report is not None:
        print_evaluation_report(console, report.report, examples)
        kept = report.report.recipe.warnings if report.report.recipe is not None else []
    for warning in report.warnings:
        if warning not in kept:
            console.print(Text(f"Warning: {warning}", style="yellow"))


def _explain(client: Client, run: dict[str, Any]) -> None:
    """Why a stage did not succeed; those that only waited for another get no line."""
    if run["reason_code"] in ("upstream_failed", "upstream_cancelled"):
        return
    error = client.get(f"runs/{run['id']}")["error"] or {}
    print(f"{run_name(run)} {run['state']}: {run['reason']} [{run['reason_code']}]", file=sys.stderr)
    for place in error.get("errors", [])[:10]:
        print(f"  {place['location']}: {place['message']}", file=sys.stderr)
    if error.get("hint"):
        print(f"  {error['hint']}", file=sys.stderr)
    if run["state"] == "failed":
        print(f"  Its log: steerboard runs logs {run_name(run)}", file=sys.stderr)
