"""A model's files, from the API into a folder."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from steerboard.cli.client import Client
from steerboard.platform.storage.artifacts import CorruptArtifact, safe_member

# Never imported: it is written into exports, and needs torch.
GUIDED_SCRIPT = Path(__file__).with_name("sample_guided.py")


def download_model(client: Client, model: dict[str, Any], folder: Path) -> None:
    """`model` as the API describes it. Every file's hash is verified; raises `CorruptArtifact`."""
    download_files(client, f"models/{model['id']}/files", model["files"], folder, model["name"])


def download_files(client: Client, url: str, files: Sequence[Mapping[str, Any]], folder: Path, name: str) -> None:
    """`files` (path, size, sha256) from below `url` into `folder`. Every file's hash is verified; raises
    `CorruptArtifact`."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(f"Exporting {name}", total=sum(file["size"] for file in files))
        for file in files:
            target = folder / safe_member(file["path"])
            target.parent.mkdir(parents=True, exist_ok=True)
            progress.advance(task, client.download(f"{url}/{quote(file['path'])}", target))
            with target.open("rb") as content:
                if hashlib.file_digest(content, "sha256").hexdigest() != file["sha256"]:
                    raise CorruptArtifact(f"{file['path']} did not arrive as it was stored", hint="Try again.")


def add_guided_script(model: dict[str, Any], folder: Path) -> Path | None:
    """Write the script that samples with guidance into the folder of a policy that takes a condition, unless the model
    has a file of this name. Returns its path, None where none was written."""
    target = folder / GUIDED_SCRIPT.name
    if not (model["info"] or {}).get("condition") or target.exists():
        return None
    shutil.copyfile(GUIDED_SCRIPT, target)
    return target
