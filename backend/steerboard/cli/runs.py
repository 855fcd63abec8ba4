"""`steerboard runs`: look at runs, and read their logs and metrics."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from json import dumps
from typing import Annotated, Any

import typer
from rich.text import Text

from steerboard.cli import run_control, run_marks
from steerboard.cli.client import Client, path_of
from steerboard.cli.histories import import_history
from steerboard.cli.models.uploads import with_folders
from steerboard.cli.output.console import EXIT_FAILED, JsonOption, console, note, print_json
from steerboard.cli.output.held_out_changes import print_held_out_changes
from steerboard.cli.output.ledger import print_ledger
from steerboard.cli.output.listing import Column, plain, print_table
from steerboard.cli.output.numbers import short
from steerboard.cli.output.progress import ENDED, STYLES, doing
from steerboard.cli.output.run_rows import print_runs, print_warnings, run_name
from steerboard.cli.output.watch import wait_for
from steerboard.cli.row_checks import CheckOption, check_rows_of_run
from steerboard.cli.run_control import Reference
from steerboard.cli.settings import config_of
from steerboard_contracts.complaints import did_you_mean
from steerboard_contracts.errors import BadInput

app = typer.Typer(
    help="Start, import, find, inspect, tag, pause, change, cancel, resume and delete runs, and read their logs.",
    no_args_is_help=True,
)
app.add_typer(run_marks.app)
app.add_typer(run_control.app)
app.command("import")(import_history)

FOLLOW_SECONDS = 1.0
SPARKS = "▁▂▃▄▅▆▇█"


_METRIC_COLUMNS = (
    Column("metric"),
    Column("steps", drop=4, right=True),
    Column("first", short, drop=3, right=True),
    Column("last", short, right=True),
    Column("low", short, drop=2, right=True),
    Column("high", short, drop=2, right=True),
    Column("curve", drop=1),
)
# Columns that the table of the dashboard has of itself, and that a view names where they were moved.
OF_EVERY_LIST = ("name", "state", "key_metric", "kind", "duration", "device_seconds", "created")


@app.command("list")
def list_runs(
    state: Annotated[list[str] | None, typer.Option(help="Only runs in this state; may be repeated.")] = None,
    kind: Annotated[list[str] | None, typer.Option(help="Only runs of this kind; may be repeated.")] = None,
    pipeline: Annotated[str | None, typer.Option(help="Only runs of this pipeline.")] = None,
    filter_: Annotated[
        str | None, typer.Option("--filter", help='Only runs that match, such as "eval_loss < 1.2 tag:good judge".')
    ] = None,
    sort: Annotated[
        str | None, typer.Option(help="Sort by a field of a filter; with - before it, the highest first.")
    ] = None,
    column: Annotated[list[str], typer.Option(help="Also show this setting, metric or result; may be repeated.")] = [],  # noqa: B006
    view: Annotated[str | None, typer.Option(help="Show a view that the project keeps.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Show at most this many.")] = 20,
    json: JsonOption = False,
) -> None:
    """List runs, newest first. Archived runs are left out, unless the filter has is:archived."""
    client = Client()
    if view is not None:
        kept = _view(client, view)
        filter_ = f"({kept['filter']}) {filter_}" if filter_ and kept["filter"] else filter_ or kept["filter"]
        sort, column = sort or kept["sort"], column or [name for name in kept["columns"] if name not in OF_EVERY_LIST]
    filters = {"state": state, "kind": kind, "pipeline": pipeline, "filter": filter_, "sort": sort, "column": column}
    runs = list(client.pages("runs", limit, **filters))
    if json:
        print_json(runs)
        return
    if not runs:
        note("No runs match. Start some with a recipe: steerboard run RECIPE")
        return
    print_runs(console(), runs, columns=column)


def _view(client: Client, name: str) -> dict[str, Any]:
    kept = {view["name"]: view["query"] for view in client.get("run-views")}
    if name not in kept:
        raise BadInput(
            f"there is no view `{name}`{did_you_mean(name, kept)}",
            code="not_found",
            hint="Keep one on the page Runs of the dashboard.",
        )
    query: dict[str, Any] = kept[name]
    return query


@app.command()
def start(
    kind: Annotated[str, typer.Argument(help="A training method, or another run kind: generate, mix, score, ...")],
    given: Annotated[
        list[str],
        typer.Option(
            "--input",
            metavar="NAME=REFERENCE",
            help="A model or dataset; a model can also be a folder or a hub name. May be repeated.",
        ),
    ] = [],  # noqa: B006
    changes: Annotated[
        list[str],
        typer.Option("--set", metavar="FIELD=VALUE", help="A setting in YAML, such as lora.rank=8; may be repeated."),
    ] = [],  # noqa: B006
    name: Annotated[str | None, typer.Option(help="Name of the run. [default: generated]")] = None,
    pool: Annotated[str, typer.Option(help="Worker pool to run it on.")] = "default",
    wait: Annotated[bool, typer.Option(help="Follow the run until it ends.")] = False,
    check: CheckOption = True,
    json: JsonOption = False,
) -> None:
    """Start a single run, outside any pipeline. Rows that the chat template refuses are found before it starts."""
    client = Client()
    key = next((schema for schema in client.get("schemas") if schema["key"] == kind), None)
    config = {"run": key["kind"], "method": key["method"]} if key else {"run": kind}
    config = config_of(changes, {field: value for field, value in config.items() if value is not None})
    names, references = zip(*map(_pair, given), strict=True) if given else ((), ())

    def send(taken: list[str]) -> Any:
        inputs = dict(zip(names, taken, strict=True))
        return client.post("runs", {"name": name, "config": config, "inputs": inputs, "pool": pool})

    if check and key and key["method"]:
        if any("/" in reference or ":" in reference for reference in references):
            note("The rows are not checked before the start because a model is imported first. The run checks them.")
        else:
            work = {"config": config, "inputs": dict(zip(names, references, strict=True)), "pool": pool}
            check_rows_of_run(client, work)
    run = with_folders(client, list(references), send)
    if wait:
        run = wait_for(client, run)
    if json:
        print_json(run)
    else:
        console().print(plain(f"{run_name(run)}  {run['id']}  {run['state']}"))
        print_warnings(run)
    if wait and run["state"] != "succeeded":
        note(f"{run['reason']} [{run['reason_code']}]")
        raise typer.Exit(EXIT_FAILED)


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise typer.BadParameter(f"write NAME=VALUE instead of {text!r}")
    return name, value


@app.command()
def show(run: Reference, json: JsonOption = False) -> None:
    """Show a run: its inputs, outputs, settings and history."""
    details = Client().get(path_of("runs", run))
    if json:
        print_json(details)
        return
    out = console()
    out.print(Text.assemble((f"{run_name(details)} ", "bold"), (details["state"], STYLES.get(details["state"], ""))))
    for label, value in _facts(details):
        if value:
            out.print(plain(f"{label:<10} {value}"))
    print_warnings(details)
    for attempt in details["attempts"]:
        words = (
            f"{attempt['outcome'] or 'at work'} on {attempt['worker']}, {attempt['device_seconds']:.1f} device-seconds"
        )
        reason = f": {attempt['reason']}" if attempt["reason"] else ""
        out.print(plain(f"attempt {attempt['attempt']}  {words}{reason}"))
    print_held_out_changes(details, out)
    print_ledger(out, details["ledger"])
    for step in details["timeline"]:
        when = step["created_at"][:19].replace("T", " ")
        out.print(plain(f"{when}  {step['to_state']:<10} {step['reason']}"), style="dim")
    for changed in details["changes"]:
        words = ", ".join(f"{name} {value:g}" for name, value in changed["values"].items())
        when = f"from step {changed['step']}" if changed["step"] else "from the next step"
        out.print(plain(f"changed {when} by {changed['by']}: {words}"))
    for finding in details["findings"]:
        out.print(plain(f"health, step {finding['step']}: {finding['reason']} ({finding['action']})"), style="yellow")
    if details["shards"]:
        print_runs(out, details["shards"])


def _attempts(run: dict[str, Any]) -> str:
    failed = f"{run['failed_attempts']} of at most {run['max_attempts']} failed" if run["failed_attempts"] else ""
    lost = f"{run['interruptions']} of at most {run['max_interruptions']} interruptions" if run["interruptions"] else ""
    return ", ".join(filter(None, (failed, lost)))


def _settings(settings: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """What is set, as `--set` takes it: `lora.rank 8`, `lora.targets all`."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _settings(value, f"{above}{name}.")
        elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
            yield from _settings(dict(enumerate(value)), f"{above}{name}.")  # type: ignore[arg-type]
        elif value not in (None, []):
            yield f"{above}{name}", _shown(value)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return " ".join(map(_shown, value))
    return short(value) if isinstance(value, float) else str(value)


def _facts(run: dict[str, Any]) -> list[tuple[str, str]]:
    error = run["error"] or {}
    settings = ", ".join(f"{name} {value}" for name, value in _settings(run["config"]))
    summary = ", ".join(f"{name} {value}" for name, value in _settings(run["summary"] or {}))
    return [
        ("id", run["id"]),
        ("reason", run["reason"]),
        ("hint", str(error.get("hint") or "") if run["state"] == "failed" else ""),
        ("attempts", _attempts(run)),
        ("doing", doing(run) if run["state"] == "running" else ""),
        ("from", ", ".join(f"{given['name']} {given['label']}" for given in run["inputs"])),
        ("made", ", ".join(f"{output['type']} {output['label'] or ''}".strip() for output in run["outputs"])),
        ("figures", summary),
        ("settings", settings),
    ]


@app.command()
def logs(
    run: Reference,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow the log until the run ends.")] = False,
    level: Annotated[
        list[str] | None, typer.Option(help="Only this level: info, warning or error; may be repeated.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print each line as a JSON document.")] = False,
) -> None:
    """Print the log of a run."""
    client = Client()
    cursor: str | None = None
    seen = 0
    while True:
        ended = client.get(path_of("runs", run))["state"] in ENDED
        while True:
            page = client.get(path_of("runs", run, "logs"), cursor=cursor, level=level, limit=1000)
            for line in page["items"][seen:]:
                print(dumps(line) if json else f"{line['created_at'][11:19]} {line['level']:<7} {line['message']}")
            # The last page grows; what was printed of it is remembered.
            seen = len(page["items"]) if page["next"] is None else 0
            if page["next"] is None:
                break
            cursor = page["next"]
        if ended or not follow:
            return
        time.sleep(FOLLOW_SECONDS)


@app.command()
def metrics(
    run: Reference,
    name: Annotated[list[str] | None, typer.Option(help="Only this metric; may be repeated.")] = None,
    points: Annotated[int, typer.Option(min=1, max=10_000, help="At most this many points per metric.")] = 500,
    json: JsonOption = False,
) -> None:
    """Print the metrics of a run: first, last, lowest and highest value, and the curve."""
    curves = Client().get(path_of("runs", run, "metrics"), name=name, points=points)
    if json:
        print_json(curves)
        return
    if not curves:
        note(f"{run} has no metrics{' of this name' if name else ' yet'}.")
        return
    rows = []
    for series in curves:
        values = [point["value"] for point in series["points"]]
        low, high = min(p["low"] for p in series["points"]), max(p["high"] for p in series["points"])
        rows.append((series["name"], series["steps"], values[0], values[-1], low, high, sparkline(values)))
    print_table(console(), _METRIC_COLUMNS, rows)


def sparkline(values: list[float], width: int = 24) -> str:
    """The values as little bars, evenly thinned out."""
    picked = [values[i * len(values) // width] for i in range(width)] if len(values) > width else values
    low, high = min(picked), max(picked)
    if high == low:
        return SPARKS[0] * len(picked)
    return "".join(SPARKS[round((value - low) / (high - low) * (len(SPARKS) - 1))] for value in picked)
