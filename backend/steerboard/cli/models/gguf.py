"""`steerboard models export --gguf`: one file for llama.cpp and Ollama, made and compared by a worker."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from steerboard.cli.client import Client
from steerboard.cli.models.files import download_files
from steerboard.cli.output.console import EXIT_FAILED, note, tell
from steerboard.cli.output.watch import wait_for

Out = dict[str, Any]


def made_gguf(client: Client, model: Out, precision: str, pool: str) -> Out:
    """The finished export of `model`, an equal earlier one where there is one. Raises `typer.Exit` where its run does
    not succeed."""
    url = f"models/{model['id']}/gguf"
    run = client.post(url, {"precision": precision, "pool": pool})
    wait_for(client, run)
    run = client.get(f"runs/{run['id']}")
    if run["state"] != "succeeded":
        note(f"{run['reason']} [{run['reason_code']}]")
        if hint := (run["error"] or {}).get("hint"):
            note(hint)
        raise typer.Exit(EXIT_FAILED)
    made: Out = next(export for export in client.get(url) if export["run"] == run["id"])
    return made


def download_gguf(client: Client, model: Out, exported: Out, folder: Path) -> None:
    """Raises `CorruptArtifact`."""
    url = f"models/{model['id']}/gguf/{exported['run']}"
    download_files(client, url, exported["files"], folder, model["name"])


def tell_of_gguf(model: Out, exported: Out, folder: Path, *, json: bool) -> None:
    result = exported["result"]
    document = {"model": model["name"], "folder": str(folder), "found": exported["found"], **result}
    tell(f"Wrote {folder / result['file']} ({result['size']:,} bytes). {exported['found']}.", document, json=json)
