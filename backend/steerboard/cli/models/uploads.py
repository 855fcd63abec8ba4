"""Bring a model folder of this machine to the server, which keeps it for `base` stages."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steerboard.cli.client import ApiError, Client, path_of
from steerboard_contracts.errors import BadInput
from steerboard_contracts.files.base_sources import is_model_file
from steerboard_contracts.files.local_folders import FolderNotAllowed


def upload_model(client: Client, folder: Path) -> str:
    """What names it as a base model there. Files that the project has already do not travel again.

    Raises `BadInput` (`not_a_model`), `ApiError`, `ServerUnreachable`."""
    files = [path for path in sorted(folder.iterdir()) if is_model_file(path.name) and path.is_file()]
    names = [path.name for path in files]
    if "config.json" not in names or not any(name.endswith(".safetensors") for name in names):
        raise BadInput(
            f"{folder} has no {'config.json' if 'config.json' not in names else '.safetensors file'}",
            code="not_a_model",
            hint="Give a folder saved by save_pretrained.",
        )
    announced = [{"path": path.name, "sha256": _hash(path), "size": path.stat().st_size} for path in files]
    upload = client.post("model-uploads", {"name": folder.resolve().name or "model", "files": announced})
    missing = [path for path in files if path.name in upload["missing"]]
    if missing:
        size = sum(path.stat().st_size for path in missing)
        print(f"Uploading {folder} ({size / 2**20:,.1f} MB), which the server may not read itself", file=sys.stderr)
    for path in missing:
        with path.open("rb") as content:
            upload = client.post(
                path_of("model-uploads", upload["hash"], "files", path.name), files={"file": content}, timeout=None
            )
    return str(upload["source"])


def folder_here(value: str) -> Path | None:
    """The folder of this machine that is meant, if one is: by its absolute path."""
    if os.sep not in value and value not in ("~", ".", ".."):
        return None
    folder = Path(value).expanduser()
    return folder.absolute() if folder.is_dir() else None


def with_folders(client: Client, named: list[str], send: Callable[[list[str]], Any]) -> Any:
    """What `send` returns for `named`, where `./model` means a folder here. Folders that the server may not read are
    brought to it first. Raises `ApiError`, `BadInput` (`not_a_model`)."""
    folders = [folder_here(one) for one in named]
    try:
        return send([str(folder or one) for folder, one in zip(folders, named, strict=True)])
    except ApiError as error:
        if error.code != FolderNotAllowed.code or not any(folders):
            raise
    return send([upload_model(client, folder) if folder else one for folder, one in zip(folders, named, strict=True)])


def _hash(path: Path) -> str:
    try:
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}", code="not_a_model") from None
