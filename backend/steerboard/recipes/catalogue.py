"""What a recipe's inputs can name: datasets, models and folders. The planner asks; it never queries itself."""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

RANDOM_BASES = ("random:tiny-llama",)
_HUB_NAME = re.compile(r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?$")
_MODEL_FILES = (".safetensors", ".json", ".txt", ".model", ".jinja")
_READ_WHOLE = 1 << 20


@dataclass(frozen=True)
class KnownDataset:
    id: uuid.UUID
    name: str
    kind: str
    rows: int


@dataclass(frozen=True)
class KnownModel:
    id: uuid.UUID
    name: str
    role: str


class Catalogue(Protocol):
    """Names of one project. `..._names` are for suggestions."""

    def dataset(self, ref: str) -> KnownDataset | None: ...

    def model(self, ref: str) -> KnownModel | None: ...

    def dataset_names(self) -> list[str]: ...

    def model_names(self) -> list[str]: ...


def source_type(source: str) -> Literal["random", "folder", "hub"] | None:
    """How a base model that is not in the registry is meant."""
    if source.startswith("random:"):
        return "random"
    if source.startswith(("/", "./", "../", "~")) or source in (".", "..") or os.path.isdir(source):
        return "folder"
    return "hub" if _HUB_NAME.match(source) else None


def fingerprint(folder: str) -> str:
    """SHA-256 over names and contents of a model folder's files; for large ones over size and time of change.

    Raises `ValueError` with what is wrong with the folder.
    """
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise ValueError(f"there is no folder `{folder}`")
    if not (path / "config.json").is_file():
        raise ValueError(f"`{folder}` has no config.json, so it is not a model folder")
    if not any(path.glob("*.safetensors")):
        raise ValueError(f"`{folder}` has no .safetensors file; other formats are not loaded")
    digest = hashlib.sha256()
    for file in sorted(path.iterdir()):
        if file.suffix not in _MODEL_FILES or not file.is_file():
            continue
        stat = file.stat()
        state = file.read_bytes() if stat.st_size <= _READ_WHOLE else str(stat.st_mtime_ns).encode()
        digest.update(f"{file.name}\x00{stat.st_size}\x00".encode() + hashlib.sha256(state).digest())
    return digest.hexdigest()
