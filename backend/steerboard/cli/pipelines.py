"""`steerboard pipelines`: look at pipelines, wait for them, cancel and resume them, print their reports."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer

from steerboard.cli.client import Client, path_of
from steerboard.cli.files import write_whole
from steerboard.cli.output.console import JsonOption, console, note, print_json, tell
from steerboard.cli.output.listing import Column, moment, print_table
from steerboard.cli.output.pipeline_result import finish, print_report
from steerboard.cli.output.progress import STYLES
from steerboard.cli.output.rounds_table import print_rounds
from steerboard.cli.output.run_rows import device_time, print_runs, print_warnings, run_name
from steerboard.cli.output.sweep_table import print_sweep
from steerboard_contracts.report.pipeline import PipelineReport
from steerboard_contracts.report.rounds import RoundsReport
from steerboard_contracts.report.sweep import SweepReport
from steerboard_contracts.wording import counted, listed

app = typer.Typer(help="Inspect, cancel and resume pipelines, and print their reports.", no_args_is_help=True)

Reference = Annotated[str, typer.Argument(help="Name, for example demo-1, id or the end of an id.")]


_COLUMNS = (
    Column("pipeline"),
    Column("state", styles=STYLES),
    Column("stages", right=True, drop=3),
    Column("device-s", lambda seconds: f"{seconds:.0f}", right=True, drop=4),
    Column("started", moment, drop=2),
    Column("id", drop=1, id=True),
)


@app.command("list")
def list_pipelines(
    limit: Annotated[int, typer.Option(min=1, max=500, help="Show at most this many.")] = 20, json: JsonOption = False
) -> None:
    """List pipelines, newest first."""
    pipelines = list(Client().pages("pipelines", limit))
    if json:
        print_json(pipelines)
        return
    if not pipelines:
        note("No pipelines yet. Start one with a recipe: steerboard run RECIPE")
        return
    rows = []
    for pipeline in pipelines:
        done = f"{pipeline['stages'].get('succeeded', 0)}/{sum(pipeline['stages'].values())}"
        rows.append(
            (
                pipeline["name"],
                pipeline["state"],
                done,
                device_time(pipeline),
                pipeline["created_at"],
                pipeline["id"],
            )
        )
    print_table(console(), _COLUMNS, rows)


@app.command()
def show(pipeline: Reference, json: JsonOption = False) -> None:
    """Show a pipeline and its stages."""
    client = Client()
    details = client.get(path_of("pipelines", pipeline))
    if json:
        print_json(details)
        return
    out = console()
    print_runs(out, details["runs"], details)
    for run in details["runs"]:
        print_warnings(run, f"{run['name']}: ")
    summary = client.get(f"pipelines/{details['id']}/report")["summary"] if out.is_terminal else None
    if summary is not None:
        out.print(summary["verdict"], markup=False)


@app.command()
def wait(
    pipeline: Reference,
    json: JsonOption = False,
    report: Annotated[Path | None, typer.Option(help="Also write the report to this file, as JSON.")] = None,
) -> None:
    """Follow a pipeline to its end and print its report."""
    client = Client()
    details = client.get(path_of("pipelines", pipeline))
    finish(client, console(stderr=json), details, json=json, report_path=report, examples=None)


@app.command()
def cancel(pipeline: Reference, json: JsonOption = False) -> None:
    """Cancel every stage that has not ended."""
    cancelled = Client().post(path_of("pipelines", pipeline, "cancel"))
    left = [run_name(run) for run in cancelled["runs"] if run["state"] == "running"]
    words = f"{cancelled['name']}: {cancelled['state']}"
    if left:
        words += f"\n{listed(left)} {'end' if len(left) > 1 else 'ends'} at the next heartbeat of the worker."
    tell(words, cancelled, json=json)


@app.command()
def resume(pipeline: Reference, json: JsonOption = False) -> None:
    """Resume every failed or cancelled stage from its newest checkpoint. Stages that succeeded are kept."""
    client = Client()
    path = path_of("pipelines", pipeline)
    before = client.get(path)["stages"]
    resumed = client.post(f"{path}/resume")
    count = before.get("failed", 0) + before.get("cancelled", 0)
    tell(f"{resumed['name']}: {resumed['state']}, with {counted(count, 'stage')} resumed", resumed, json=json)


@app.command()
def report(
    pipeline: Reference,
    json: JsonOption = False,
    output: Annotated[Path | None, typer.Option(help="Write the report to this file, as JSON.")] = None,
    stage: Annotated[str | None, typer.Option(help="Evaluation stage, if there are several.")] = None,
    examples: Annotated[
        bool | None, typer.Option(help="Show example answers; by default only those of synthetic data.")
    ] = None,
) -> None:
    """Print the report: whether a method won, every method's figures, and the costs."""
    client = Client()
    document = client.get(path_of("pipelines", pipeline, "report"), stage=stage)
    if output is not None:
        write_whole(output, orjson.dumps(document, option=orjson.OPT_INDENT_2))
    if json:
        print_json(document)
        return
    print_report(console(), PipelineReport.model_validate(document), examples)


@app.command()
def sweep(pipeline: Reference, json: JsonOption = False) -> None:
    """Show the variants of a sweep: settings, held-out figures, the best, and which others are within noise of it."""
    document = Client().get(path_of("pipelines", pipeline, "sweep"))
    if json:
        print_json(document)
        return
    print_sweep(console(), SweepReport.model_validate(document))


@app.command()
def rounds(pipeline: Reference, json: JsonOption = False) -> None:
    """Show the rounds of a pipeline: what each kept, how its policy answers, what the stop rule decided, and the
    costs."""
    document = Client().get(path_of("pipelines", pipeline, "rounds"))
    if json:
        print_json(document)
        return
    print_rounds(console(), RoundsReport.model_validate(document))
