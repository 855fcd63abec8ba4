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
from steerboard.cli.output.pipeline_result import finish
from steerboard.cli.output.progress import STYLES
from steerboard.cli.output.report_table import print_report, print_stages
from steerboard.cli.output.rounds_table import print_rounds
from steerboard.cli.output.run_rows import print_runs, print_warnings, run_name
from steerboard.cli.output.sweep_table import print_sweep
from steerboard_contracts.report.pipeline import Report
from steerboard_contracts.report.rounds import RoundsReport
from steerboard_contracts.report.sweep import SweepReport
from steerboard_contracts.wording import counted, listed

app = typer.Typer(help="Inspect, cancel and resume pipelines, and print their reports.", no_args_is_help=True)

Reference = Annotated[str, typer.Argument(help="Name, for example demo-1, or an id or its end.")]


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
    limit: Annotated[int, typer.Option(min=1, max=500, help="At most this many.")] = 20, json: JsonOption = False
) -> None:
    """The newest pipelines."""
    found = list(Client().pages("pipelines", limit))
    if json:
        print_json(found)
        return
    if not found:
        note("No pipelines yet. A recipe starts one: steerboard run RECIPE")
        return
    rows = []
    for one in found:
        done = f"{one['stages'].get('succeeded', 0)}/{sum(one['stages'].values())}"
        rows.append((one["name"], one["state"], done, one["device_seconds"], one["created_at"], one["id"]))
    print_table(console(), _COLUMNS, rows)


@app.command()
def show(pipeline: Reference, json: JsonOption = False) -> None:
    """A pipeline and its stages."""
    client = Client()
    found = client.get(path_of("pipelines", pipeline))
    if json:
        print_json(found)
        return
    out = console()
    print_runs(out, found["runs"], found)
    for run in found["runs"]:
        print_warnings(run, f"{run['name']}: ")
    summary = client.get(f"pipelines/{found['id']}/report")["summary"] if out.is_terminal else None
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
    found = client.get(path_of("pipelines", pipeline))
    finish(client, console(stderr=json), found, json=json, report_path=report, examples=None)


@app.command()
def cancel(pipeline: Reference, json: JsonOption = False) -> None:
    """End every stage that has not ended."""
    found = Client().post(path_of("pipelines", pipeline, "cancel"))
    left = [run_name(run) for run in found["runs"] if run["state"] == "running"]
    words = f"{found['name']}: {found['state']}"
    if left:
        words += f"\n{listed(left)} {'end' if len(left) > 1 else 'ends'} at the next heartbeat of the worker."
    tell(words, found, json=json)


@app.command()
def resume(pipeline: Reference, json: JsonOption = False) -> None:
    """Resume every stage that failed or was cancelled, from its newest checkpoint. What succeeded is kept."""
    client = Client()
    path = path_of("pipelines", pipeline)
    before = client.get(path)["stages"]
    found = client.post(f"{path}/resume")
    count = before.get("failed", 0) + before.get("cancelled", 0)
    tell(f"{found['name']}: {found['state']}, with {counted(count, 'stage')} resumed", found, json=json)


@app.command()
def report(
    pipeline: Reference,
    json: JsonOption = False,
    output: Annotated[Path | None, typer.Option(help="Write the report to this file, as JSON.")] = None,
    stage: Annotated[str | None, typer.Option(help="Which evaluation, if there are several.")] = None,
    examples: Annotated[
        bool | None, typer.Option(help="Show example answers; by default only those of synthetic data.")
    ] = None,
) -> None:
    """The report: whether a method won, every method's figures, and what it cost."""
    client = Client()
    document = client.get(path_of("pipelines", pipeline, "report"), stage=stage)
    if output is not None:
        write_whole(output, orjson.dumps(document, option=orjson.OPT_INDENT_2))
    if json:
        print_json(document)
        return
    found = Report.model_validate(document)
    out = console()
    print_stages(out, found)
    print_report(out, found, pipeline, examples)


@app.command()
def sweep(pipeline: Reference, json: JsonOption = False) -> None:
    """The variants of a sweep: settings, held-out figures, the best, and which others are within noise of it."""
    document = Client().get(path_of("pipelines", pipeline, "sweep"))
    if json:
        print_json(document)
        return
    print_sweep(console(), SweepReport.model_validate(document))


@app.command()
def rounds(pipeline: Reference, json: JsonOption = False) -> None:
    """The rounds of a pipeline: what each kept, how its policy answers, what the stop rule decided, and the costs."""
    document = Client().get(path_of("pipelines", pipeline, "rounds"))
    if json:
        print_json(document)
        return
    print_rounds(console(), RoundsReport.model_validate(document))
