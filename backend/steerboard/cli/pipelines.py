"""`steerboard pipelines`: look at pipelines, wait for them, cancel them, print their reports."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from steerboard.cli.client import Client
from steerboard.cli.finishing import finish
from steerboard.cli.output import JsonOption, print_json, write_whole
from steerboard.cli.progress import STYLES, doing
from steerboard.cli.table import print_report, print_stages
from steerboard_contracts.report import Report

app = typer.Typer(help="Look at pipelines, cancel them, print their reports.", no_args_is_help=True)

Reference = Annotated[str, typer.Argument(help="Name or id, for example demo-1.")]


@app.command("list")
def list_pipelines(limit: Annotated[int, typer.Option(min=1, max=500)] = 20, json: JsonOption = False) -> None:
    """The newest pipelines."""
    found = list(Client().pages("pipelines", limit))
    if json:
        print_json(found)
        return
    table = _table("pipeline", "state", "stages", "device-s", "started")
    for one in found:
        done, total = one["stages"].get("succeeded", 0), sum(one["stages"].values())
        table.add_row(
            one["name"],
            Text(one["state"], STYLES.get(one["state"], "")),
            f"{done}/{total}",
            f"{one['device_seconds']:.0f}",
            one["created_at"][:16].replace("T", " "),
        )
    Console().print(table)


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


@app.command()
def show(pipeline: Reference, json: JsonOption = False) -> None:
    """A pipeline and its stages."""
    found = Client().get(f"pipelines/{pipeline}")
    if json:
        print_json(found)
        return
    console = Console()
    console.print(_headline(found), markup=False)
    table = _table("stage", "kind", "state", "device-s", "")
    for run in found["runs"]:
        table.add_row(
            run["name"],
            run["method"] or run["kind"],
            Text(run["state"], STYLES.get(run["state"], "")),
            f"{run['device_seconds']:.1f}",
            Text(doing(run) if run["state"] == "running" else run["reason"]),
        )
    console.print(table)


def _headline(found: dict[str, Any]) -> str:
    failed = found["failed_device_seconds"]
    lost = f", {failed:.0f} more in failed attempts" if failed >= 0.5 else ""
    return f"{found['name']}: {found['state']}, {found['device_seconds']:.0f} device-seconds{lost}"


@app.command()
def wait(
    pipeline: Reference,
    json: JsonOption = False,
    report: Annotated[Path | None, typer.Option(help="Also write the report to this file, as JSON.")] = None,
) -> None:
    """Follow a pipeline to its end and print its report."""
    client = Client()
    found = client.get(f"pipelines/{pipeline}")
    finish(client, Console(stderr=json), found, json=json, report_path=report, examples=None)


@app.command()
def cancel(pipeline: Reference) -> None:
    """End every stage that has not ended."""
    found = Client().post(f"pipelines/{pipeline}/cancel")
    left = [run["name"] for run in found["runs"] if run["state"] == "running"]
    print(f"{found['name']}: {found['state']}")
    if left:
        print(f"{', '.join(left)} ends at its worker's next heartbeat.")


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
    """The report: which method won, by how much, at what cost."""
    client = Client()
    document = client.get(f"pipelines/{pipeline}/report", stage=stage)
    if output is not None:
        write_whole(output, orjson.dumps(document, option=orjson.OPT_INDENT_2))
    if json:
        print_json(document)
        return
    found = Report.model_validate(document)
    console = Console()
    print_stages(console, found)
    print_report(console, found, pipeline, examples)
