"""`steerboard runs`: cancel, pause, change and resume one."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from steerboard.cli.client import Client, path_of
from steerboard.cli.output.console import EXIT_FAILED, JsonOption, note, tell
from steerboard.cli.output.progress import ENDED
from steerboard.cli.output.run_rows import run_name
from steerboard.cli.output.watch import wait_for
from steerboard.cli.settings import config_of
from steerboard_contracts.errors import BadInput

app = typer.Typer()

Reference = Annotated[str, typer.Argument(help="PIPELINE.STAGE, for example demo-1.sft, id or the end of an id.")]


@app.command()
def cancel(run: Reference, json: JsonOption = False) -> None:
    """Cancel a run: immediately if it is waiting, at its worker's next heartbeat if it is running."""
    cancelled = Client().post(path_of("runs", run, "cancel"))
    waits = ": it ends at its worker's next heartbeat" if cancelled["state"] == "running" else ""
    tell(f"{run_name(cancelled)}: {cancelled['state']}{waits}", cancelled, json=json)


@app.command()
def pause(
    run: Reference,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the run is paused.")] = False,
    json: JsonOption = False,
) -> None:
    """Pause a training run: it saves a checkpoint after its current step and frees its device.

    With --wait: exit 1 if it ends before it pauses.
    """
    client = Client()
    paused = client.post(path_of("runs", run, "pause"))
    if wait:
        paused = wait_for(client, paused, until=(*ENDED, "paused"))
    waits = ": it pauses after its current step" if paused["state"] == "running" else ""
    tell(f"{run_name(paused)}: {paused['state']}{waits}", paused, json=json)
    if wait and paused["state"] != "paused":
        raise typer.Exit(EXIT_FAILED)


@app.command()
def change(
    run: Reference,
    settings: Annotated[
        list[str], typer.Argument(metavar="FIELD=VALUE...", help="New settings, such as lr=1e-6 kl_weight=0.1.")
    ],
    json: JsonOption = False,
) -> None:
    """Change settings of a training run from its next step on. No checkpoint is lost and no step repeated."""
    config = config_of(settings, {})
    changed = Client().post(path_of("runs", run, "change"), {"config": config})
    now = ", ".join(f"{name} {value:g}" for name, value in changed["changeable"].items())
    tell(f"{run_name(changed)}: {now}", changed, json=json)


@app.command()
def resume(
    run: Reference,
    fix: Annotated[bool, typer.Option("--fix", help="Use the settings suggested by its error.")] = False,
    json: JsonOption = False,
) -> None:
    """Resume a failed, cancelled or paused run from its newest checkpoint, with new attempts; runs that need it wait
    again."""
    client = Client()
    changes: dict[str, Any] = {}
    if fix:
        known = (client.get(path_of("runs", run))["error"] or {}).get("fix")
        if known is None:
            raise BadInput(
                f"run {run} has no error with suggested settings",
                code="no_fix",
                hint="Resume it as it is, or clone it with changes in the dashboard.",
            )
        changes = known["changes"]
        note(f"with {known['says']}")
    resumed = client.post(path_of("runs", run, "resume"), {"config": changes})
    tell(f"{run_name(resumed)}: {resumed['state']}", resumed, json=json)
