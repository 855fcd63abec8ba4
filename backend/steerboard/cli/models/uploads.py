"""Bring a model folder or file of this machine to the server, which keeps it for `base` stages."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steerboard.cli.client import ApiError, Client, path_of
from steerboard_contracts.errors import BadInput
from steerboard_contracts.files.base_sources import GGUF, TEMPLATES_FOLDER, base_place, gguf_to_read, is_model_file
from steerboard_contracts.files.gguf import read_header
from steerboard_contracts.files.local_folders import FolderNotAllowed


def upload_model(client: Client, place: Path) -> str:
    """What names a folder or a .gguf file as a base model there. Files that the project has already do not travel
    again. Raises `BadInput` (`not_a_model`), `SeveralGgufFiles`, `UnsupportedGguf`, `BadModel`, `ApiError`,
    `ServerUnreachable`."""
    files = model_files(place)
    announced = [{"path": name, "sha256": _hash(path), "size": path.stat().st_size} for name, path in files.items()]
    upload = client.post("model-uploads", {"name": place.resolve().name or "model", "files": announced})
    missing = {name: path for name, path in files.items() if name in upload["missing"]}
    if missing:
        size = sum(path.stat().st_size for path in missing.values())
        print(f"Uploading {place} ({size / 2**20:,.1f} MB), which the server may not read itself", file=sys.stderr)
    for name, path in missing.items():
        with path.open("rb") as content:
            upload = client.post(
                path_of("model-uploads", upload["hash"], "files", name), files={"file": content}, timeout=None
            )
    return str(upload["source"])


def model_files(place: Path) -> dict[str, Path]:
    """The files that an import of a folder or a .gguf file reads, by their name in the folder. A GGUF file is checked
    to be whole before it travels. Raises `BadInput` (`not_a_model`), `SeveralGgufFiles`, `UnsupportedGguf`,
    `BadModel`."""
    inside, chosen = base_place(str(place))
    folder = Path(inside)
    places = [*sorted(folder.iterdir()), *sorted(folder.glob(f"{TEMPLATES_FOLDER}/*"))]
    named = {path.relative_to(folder).as_posix(): path for path in places}
    files = {name: path for name, path in named.items() if is_model_file(name) and path.is_file()}
    gguf = gguf_to_read(list(files), str(folder), chosen)
    if gguf is None:
        return {name: path for name, path in files.items() if not name.endswith(GGUF)}
    path = folder / gguf
    try:
        with path.open("rb") as content:
            read_header(content, path.stat().st_size, gguf)
    except OSError as error:
        raise _unreadable(path, error) from None
    return {gguf: path}


def folder_here(value: str) -> Path | None:
    """The model folder, or the .gguf file, of this machine that is meant, if one is: by its absolute path."""
    if os.sep not in value and value not in ("~", ".", ".."):
        return None
    place = Path(value).expanduser()
    return place.absolute() if place.is_dir() or (place.suffix == GGUF and place.is_file()) else None


def with_folders(client: Client, named: list[str], send: Callable[[list[str]], Any]) -> Any:
    """What `send` returns for `named`, where `./model` means a folder here. Folders that the server may not read are
    brought to it first. Raises what `upload_model` does."""
    folders = [folder_here(source) for source in named]
    try:
        return send([str(folder or source) for folder, source in zip(folders, named, strict=True)])
    except ApiError as error:
        if error.code != FolderNotAllowed.code or not any(folders):
            raise
    return send(
        [upload_model(client, folder) if folder else source for folder, source in zip(folders, named, strict=True)]
    )


def _hash(path: Path) -> str:
    try:
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> BadInput:
    return BadInput(f"{path} cannot be read: {error.strerror}", code="not_a_model")
