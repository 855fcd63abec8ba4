"""`steerboard trackers`: where a project's runs are exported to while they run."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from steerboard.cli.client import Client, path_of
from steerboard.cli.output.console import JsonOption, console, note, print_json, tell
from steerboard.cli.output.listing import Column, moment, print_table

app = typer.Typer(no_args_is_help=True, help="Export runs to MLflow, W&B, TensorBoard or Trackio.")

Name = Annotated[str, typer.Argument(help="Name of the tracker.")]
SecretFrom = Annotated[
    str | None, typer.Option(help="Environment variable that holds the password, token or API key.", metavar="NAME")
]
RunKinds = Annotated[list[str] | None, typer.Option("--kind", help="Kind of run to export; may be repeated.")]

_COLUMNS = (
    Column("tracker"),
    Column("kind"),
    Column("to", drop=3),
    Column("state", styles={"off": "yellow", "failing": "red", "on": "green"}),
    Column("runs", right=True, drop=2),
    Column("last export", moment, drop=4),
    Column("last error", words=True, drop=1),
)
_EXPORT_COLUMNS = (
    Column("tracker"),
    Column("step", right=True),
    Column("state", styles={"failing": "red", "complete": "green"}),
    Column("where"),
    Column("last error", words=True, drop=1),
)


@app.command("create")
def create(
    kind: Annotated[str, typer.Argument(help="mlflow, wandb, tensorboard or trackio.")],
    name: Name,
    url: Annotated[str | None, typer.Option(help="URL of the MLflow or W&B server.")] = None,
    experiment: Annotated[str | None, typer.Option(help="MLflow: the experiment; by default the project.")] = None,
    user: Annotated[str | None, typer.Option(help="MLflow: the user whose password the secret is.")] = None,
    tracker_project: Annotated[str | None, typer.Option(help="W&B and Trackio: the project there.")] = None,
    entity: Annotated[str | None, typer.Option(help="W&B: the team.")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="W&B: write files for `wandb sync`.")] = False,
    secret_from: SecretFrom = None,
    run_kind: RunKinds = None,
    json: JsonOption = False,
) -> None:
    """Export the runs that begin from now on. Needs a token with the scope admin."""
    given = {"url": url, "experiment": experiment, "user": user, "project": tracker_project, "entity": entity}
    settings = {key: value for key, value in given.items() if value is not None} | {"kind": kind}
    if offline:
        settings["mode"] = "offline"
    body: dict[str, Any] = {"name": name, "settings": settings}
    if run_kind:
        body["run_kinds"] = run_kind
    made = Client().post("trackers", body | _secret(secret_from))
    tell(f"Tracker {name} exports the {', '.join(made['run_kinds'])} runs that begin from now on", made, json=json)


@app.command("list")
def list_trackers(json: JsonOption = False) -> None:
    """List the project's trackers, when each was last sent something, and its last error."""
    trackers = Client().get("trackers")
    if json:
        print_json(trackers)
        return
    if not trackers:
        note("No trackers yet. Create one: steerboard trackers create KIND NAME")
        return
    rows = [
        (row["name"], row["kind"], _place(row), _state(row), row["runs"], row["last_export_at"], row["last_error"])
        for row in trackers
    ]
    print_table(console(), _COLUMNS, rows)


@app.command("change")
def change(
    tracker: Name,
    on: Annotated[bool | None, typer.Option("--on/--off", help="Turn the tracker on or off.")] = None,
    secret_from: SecretFrom = None,
    run_kind: RunKinds = None,
    json: JsonOption = False,
) -> None:
    """Switch a tracker on or off, replace its secret, or choose other kinds of runs."""
    body: dict[str, Any] = {} if on is None else {"active": on}
    if run_kind:
        body["run_kinds"] = run_kind
    changed = Client().patch(path_of("trackers", tracker), body | _secret(secret_from))
    tell(f"Changed tracker {tracker}", changed, json=json)


@app.command("delete")
def delete(tracker: Name, json: JsonOption = False) -> None:
    """Export nothing more to a tracker. What it has stays there."""
    Client().delete(path_of("trackers", tracker))
    tell(f"Deleted tracker {tracker}", {"deleted": tracker}, json=json)


@app.command("export")
def export(
    tracker: Name,
    run: Annotated[str, typer.Argument(help="PIPELINE.STAGE, id or the end of an id.")],
    json: JsonOption = False,
) -> None:
    """Export a run that began before the tracker was made, or try again now."""
    progress = Client().post(path_of("trackers", tracker, "exports"), {"run": run})
    tell(f"Run {run} is exported to {tracker} within seconds", progress, json=json)


@app.command("show")
def show(
    run: Annotated[str, typer.Argument(help="PIPELINE.STAGE, id or the end of an id.")], json: JsonOption = False
) -> None:
    """Show where a run is exported to, and how far."""
    exports = Client().get(path_of("runs", run, "exports"))
    if json:
        print_json(exports)
        return
    if not exports:
        note("This run is exported to no tracker.")
        return
    rows = [
        (row["tracker"], row["step"], _progress(row), row["link"] or row["folder"], row["last_error"])
        for row in exports
    ]
    print_table(console(), _EXPORT_COLUMNS, rows)


def _secret(variable: str | None) -> dict[str, str]:
    """The secret from the environment, since a command line is seen by others and kept in a history."""
    if variable is None:
        return {}
    value = os.environ.get(variable)
    if not value:
        raise typer.BadParameter(f"the environment variable {variable} is not set", param_hint="--secret-from")
    return {"secret": value}


def _place(tracker: dict[str, Any]) -> str | None:
    return tracker["folder"] or tracker["settings"].get("url") or "wandb.ai"


def _state(tracker: dict[str, Any]) -> str:
    if not tracker["active"]:
        return "off"
    return "failing" if tracker["last_error"] else "on"


def _progress(export: dict[str, Any]) -> str:
    if export["last_error"]:
        return "failing"
    return "complete" if export["complete"] else "waiting" if export["step"] is None else "live"
