"""`steerboard models import`: a model from outside, by a `base` run of its own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from steerboard.cli.client import Client
from steerboard.cli.models.uploads import folder_here, with_folders
from steerboard.cli.output.console import EXIT_FAILED, JsonOption, console, note, print_json
from steerboard.cli.output.listing import plain
from steerboard.cli.output.watch import wait_for
from steerboard_contracts.files.base_sources import GGUF, base_place
from steerboard_contracts.models import ModelRole


def import_(
    source: Annotated[
        str, typer.Argument(metavar="FOLDER|ORG/NAME[@REVISION]", help="A model folder, a .gguf file, or a hub name.")
    ],
    name: Annotated[str | None, typer.Option(help="Name of the model. [default: from the folder or the hub]")] = None,
    role: Annotated[
        ModelRole | None, typer.Option(help="Role of the model. [default: detected from its files]")
    ] = None,
    label: Annotated[
        int | None, typer.Option(min=0, help="Index of the label that is the reward, for a classifier with several.")
    ] = None,
    pool: Annotated[str, typer.Option(help="Worker pool to run it on.")] = "default",
    wait: Annotated[bool, typer.Option(help="Wait until the import ends.")] = True,
    json: JsonOption = False,
) -> None:
    """Import a model from a folder or the hub: safetensors with a tokenizer, or a GGUF file, which is dequantised.
    Pickles and code are never loaded."""
    client = Client()
    run = import_model(client, source, name, role=role, label=label, pool=pool, wait=wait)
    if json:
        print_json(run)
    elif run["state"] == "succeeded":
        made = next(output for output in run["outputs"] if output["type"] == "model")
        console().print(plain(f"Imported {made['label']}"))
    elif not wait:
        console().print(plain(f"Started the import {run['name']}  {run['id']}"))
    if wait and run["state"] != "succeeded":
        note(f"{run['reason']} [{run['reason_code']}]")
        raise typer.Exit(EXIT_FAILED)


def import_model(
    client: Client,
    source: str,
    name: str | None = None,
    *,
    role: ModelRole | None = None,
    label: int | None = None,
    pool: str = "default",
    wait: bool = True,
) -> Any:
    """The run that imports it, which has ended if waited for. Raises what `upload_model` does."""
    config = {"run": "base", "role": role, "label": label}
    given = {field: value for field, value in config.items() if value is not None}
    # Under another name it is another model, though an equal run made it before.
    body = {"name": name or _name_of(source), "reuse": name is None, "pool": pool}

    def send(taken: list[str]) -> Any:
        return client.post("runs", {**body, "config": {**given, "source": taken[0]}})

    run = with_folders(client, [source], send)
    if not wait:
        return run
    wait_for(client, run)
    return client.get(f"runs/{run['id']}")


def _name_of(source: str) -> str:
    """The last part of the path or of the hub name, in the characters that names have here."""
    folder = folder_here(source)
    last = folder.name if folder else Path(base_place(source).file or source.partition("@")[0]).name
    last = last.removesuffix(GGUF)
    return re.sub(r"[^A-Za-z0-9._-]+", "-", last).strip("-._")[:128] or "model"
