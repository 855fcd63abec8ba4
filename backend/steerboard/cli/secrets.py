"""`steerboard secrets`: another key for what is stored sealed, such as the keys of endpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from steerboard.cli.output.console import JsonOption, note, tell

app = typer.Typer(no_args_is_help=True, help="Replace the key that seals stored secrets.")

Home = Annotated[Path | None, typer.Option(help="Folder for all data. [default: .steerboard, or STEERBOARD_HOME]")]


@app.command()
def rotate(home: Home = None, json: JsonOption = False) -> None:
    """Create a new key, or take STEERBOARD_SECRET_KEY if it is set, and seal everything with it. Older keys still open
    what they sealed until `forget`."""
    from steerboard.maintenance import key_rotation
    from steerboard.maintenance.databases import database, settings_of
    from steerboard.platform.security.secrets import Secrets

    settings = settings_of(home)
    with database(settings) as engine:
        done = key_rotation.rotate(engine, Secrets(settings), settings.home)
    counts = {"sealed": done.values, "unreadable": done.unreadable}
    tell(f"{done.values} secrets are sealed with the new key", counts, json=json)
    if done.unreadable:
        typer.echo(f"{done.unreadable} cannot be opened with any known key, and stay as they are", err=True)
        raise typer.Exit(1)


@app.command()
def forget(home: Home = None, json: JsonOption = False) -> None:
    """Delete the older keys, once nothing is sealed with them."""
    from steerboard.maintenance import key_rotation
    from steerboard.maintenance.databases import database, settings_of
    from steerboard.platform.security.secrets import Secrets

    settings = settings_of(home)
    keys = Secrets(settings)
    with database(settings) as engine:
        done = key_rotation.forget(engine, keys, settings.home)
    words = f"{done.values} secrets are sealed with the current key; older keys are no longer needed"
    tell(words, {"sealed": done.values}, json=json)
    if not keys.from_file:
        note("Remove STEERBOARD_SECRET_KEY_PREVIOUS from every process.")
