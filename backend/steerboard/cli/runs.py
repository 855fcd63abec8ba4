"""`steerboard runs`: look at runs, read their logs and metrics, cancel and resume them."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from steerboard.cli.client import Client
from steerboard.cli.output import JsonOption, print_json
from steerboard.cli.progress import ENDED, STYLES, doing
from steerboard_contracts.errors import BadInput

app = typer.Typer(help="Look at runs, read their logs, cancel and resume them.", no_args_is_help=True)

Reference = Annotated[str, typer.Argument(help="Id, or PIPELINE.STAGE, for example demo-1.sft.")]
FOLLOW_SECONDS = 1.0
SPARKS = "▁▂▃▄▅▆▇█"


@app.command("list")
def list_runs(
    state: Annotated[list[str] | None, typer.Option(help="Only runs in this state; may be repeated.")] = None,
    kind: Annotated[list[str] | None, typer.Option(help="Only runs of this kind; may be repeated.")] = None,
    pipeline: Annotated[str | None, typer.Option(help="Only runs of this pipeline.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000)] = 20,
    json: JsonOption = False,
) -> None:
    """The newest runs."""
    found = list(Client().pages("runs", limit, state=state, kind=kind, pipeline=pipeline))
    if json:
        print_json(found)
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("run", "kind", "state", "device-s", "id", ""):
        table.add_column(heading, overflow="fold")
    for run in found:
        words = doing(run) if run["state"] == "running" else run["reason"]
        table.add_row(
            run["name"],
            run["method"] or run["kind"],
            Text(run["state"], STYLES.get(run["state"], "")),
            f"{run['device_seconds']:.1f}",
            run["id"],
            Text(words, no_wrap=True, overflow="ellipsis"),
        )
    Console().print(table)


@app.command()
def show(run: Reference, json: JsonOption = False) -> None:
    """A run: what it did, from what, with which settings, how it went."""
    found = Client().get(f"runs/{run}")
    if json:
        print_json(found)
        return
    console = Console()
    console.print(Text.assemble((f"{found['name']} ", "bold"), (found["state"], STYLES.get(found["state"], ""))))
    for label, value in _facts(found):
        if value:
            console.print(Text(f"{label:<10} {value}"))
    for attempt in found["attempts"]:
        words = (
            f"{attempt['outcome'] or 'at work'} on {attempt['worker']}, {attempt['device_seconds']:.1f} device-seconds"
        )
        reason = f": {attempt['reason']}" if attempt["reason"] else ""
        console.print(Text(f"attempt {attempt['attempt']}  {words}{reason}"))
    for step in found["timeline"]:
        console.print(
            Text(f"{step['created_at'][:19].replace('T', ' ')}  {step['to_state']:<10} {step['reason']}", "dim")
        )


def _facts(run: dict[str, Any]) -> list[tuple[str, str]]:
    error = run["error"] or {}
    settings = ", ".join(f"{name} {value}" for name, value in run["config"].items() if value not in (None, [], {}))
    summary = ", ".join(
        f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in (run["summary"] or {}).items()
    )
    return [
        ("id", run["id"]),
        ("reason", run["reason"]),
        ("hint", str(error.get("hint") or "") if run["state"] == "failed" else ""),
        ("doing", doing(run) if run["state"] == "running" else ""),
        ("from", ", ".join(f"{one['name']} {one['label']}" for one in run["inputs"])),
        ("made", ", ".join(f"{one['type']} {one['label'] or ''}".strip() for one in run["outputs"])),
        ("figures", summary),
        ("settings", settings),
    ]


@app.command()
def logs(
    run: Reference,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run ends.")] = False,
    level: Annotated[list[str] | None, typer.Option(help="info, warning or error; may be repeated.")] = None,
) -> None:
    """The log of a run's stage."""
    client = Client()
    cursor: str | None = None
    seen = 0
    while True:
        ended = client.get(f"runs/{run}")["state"] in ENDED
        while True:
            page = client.get(f"runs/{run}/logs", cursor=cursor, level=level, limit=1000)
            for line in page["items"][seen:]:
                print(f"{line['created_at'][11:19]} {line['level']:<7} {line['message']}")
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
    points: Annotated[int, typer.Option(min=1, max=10_000, help="At most this many points a metric.")] = 500,
    json: JsonOption = False,
) -> None:
    """The metrics of a run: first, last, lowest and highest value, and the curve."""
    found = Client().get(f"runs/{run}/metrics", name=name, points=points)
    if json:
        print_json(found)
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("metric", "steps", "first", "last", "low", "high", "curve"):
        table.add_column(
            heading, no_wrap=heading != "metric", justify="left" if heading in ("metric", "curve") else "right"
        )
    for series in found:
        values = [point["value"] for point in series["points"]]
        low, high = min(p["low"] for p in series["points"]), max(p["high"] for p in series["points"])
        figures = (f"{value:.4g}" for value in (values[0], values[-1], low, high))
        table.add_row(series["name"], str(series["steps"]), *figures, sparkline(values))
    Console().print(table)


def sparkline(values: list[float], width: int = 24) -> str:
    """The values as little bars, evenly thinned out."""
    picked = [values[i * len(values) // width] for i in range(width)] if len(values) > width else values
    low, high = min(picked), max(picked)
    if high == low:
        return SPARKS[0] * len(picked)
    return "".join(SPARKS[round((value - low) / (high - low) * (len(SPARKS) - 1))] for value in picked)


@app.command()
def cancel(run: Reference) -> None:
    """End a run: at once if it waits, at its worker's next heartbeat if it runs."""
    found = Client().post(f"runs/{run}/cancel")
    waits = ": it ends at its worker's next heartbeat" if found["state"] == "running" else ""
    print(f"{found['name']}: {found['state']}{waits}")


@app.command()
def resume(
    run: Reference,
    fix: Annotated[bool, typer.Option("--fix", help="With the settings that its error says would fit.")] = False,
) -> None:
    """Give a failed or cancelled run new attempts, from its newest checkpoint; what waited for it waits again."""
    client = Client()
    changes: dict[str, Any] = {}
    if fix:
        known = (client.get(f"runs/{run}")["error"] or {}).get("fix")
        if known is None:
            raise BadInput(
                f"run {run} has no error that says what would fit",
                code="no_fix",
                hint="Resume it as it is, or clone it with changes in the dashboard.",
            )
        changes = known["changes"]
        print(f"with {known['says']}")
    found = client.post(f"runs/{run}/resume", json={"config": changes})
    print(f"{found['name']}: {found['state']}")
