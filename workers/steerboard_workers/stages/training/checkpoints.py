"""Checkpoints that survive a crash at any write.

A checkpoint is written into a temporary folder, every file is synced, a manifest of sha256 sums comes last, and the
folder is renamed into place. Reading takes the newest one whose files verify; old ones go once a new one is complete.
Folder names carry the attempt (`a1-step-00000040`), so that a stale attempt never writes into a newer one's folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from steerboard_contracts.files.disk import Disk, sync_folder
from steerboard_contracts.stage.checkpoints import CHECKPOINT_MANIFEST as MANIFEST
from steerboard_contracts.stage.checkpoints import checkpoint_name, checkpoint_place
from steerboard_workers.stages.runtime import sync_file

TENSORS = "tensors-00001.safetensors"  # and further ones, counted up
BEST = "best-00001.safetensors"  # likewise, of a run that keeps its best weights
STATE = "state.pt"
RECORD = "record.json"
KEEP = 2
# The most bytes of gathered tensors that wait in memory before they are written.
PIECE_BYTES = 4 << 30


@dataclass(frozen=True)
class Restored:
    """`keys` of the tensors, `state` (random states), `record` (step, metric history)."""

    step: int
    path: Path
    keys: list[str]
    state: dict[str, Any]
    record: dict[str, Any]

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """The tensors in the order of `keys`, one at a time."""
        yield from tensors_of(_pieces(self.path))

    @property
    def best(self) -> list[Path]:
        """Files of the best weights until then; none of a run that keeps the last."""
        return _pieces(self.path, BEST)


class Checkpoints:
    """The checkpoints of one run. `signatures` name config and inputs: they are written under the first, and taken
    under any of them. One of others is not taken."""

    def __init__(
        self,
        folder: Path,
        attempt: int,
        signatures: Sequence[str],
        log: Callable[[str], None],
        *,
        reserve_mb: int | None = None,
    ) -> None:
        self._folder = folder
        self._disk = Disk(folder, "a checkpoint", reserve_mb)
        self._attempt = attempt
        self._signatures = signatures
        self._log = log

    def save(
        self,
        step: int,
        tensors: Iterable[tuple[str, Tensor]],
        state: Mapping[str, Any],
        record: dict[str, Any],
        others: Mapping[Path, str] | None = None,
    ) -> Path:
        """Returns the folder in place. `others`: further files, with their sums, that it holds. Raises `NoSpaceLeft`;
        older checkpoints are then untouched."""
        self._folder.mkdir(parents=True, exist_ok=True)
        final = self._folder / checkpoint_name(self._attempt, step)
        temporary = self._folder / f".{final.name}.partial"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        try:
            # Piece by piece to the end: other processes wait for the next tensor, not for terabytes at once.
            sums = {path.name: sha for path, sha in write_pieces(temporary, tensors, self._disk)}
            sums |= {link(path, temporary).name: sha for path, sha in (others or {}).items()}
            torch.save(dict(state), temporary / STATE)
            write(temporary / RECORD, json.dumps({"step": step, "signature": self._signatures[0], **record}).encode())
            sums |= {name: _settled(temporary / name) for name in (STATE, RECORD)}
            write(temporary / MANIFEST, json.dumps({"files": sums}).encode())
            sync_folder(temporary)
            shutil.rmtree(final, ignore_errors=True)
            temporary.rename(final)
            sync_folder(self._folder)
        except Exception:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        self._prune(final)
        return final

    def load(self) -> Restored | None:
        """The newest checkpoint that verifies, or None. Damaged ones are skipped with a log line."""
        for path in self._newest_first():
            problem = self._problem(path)
            if problem:
                self._log(f"checkpoint {path.name} is not used: {problem}")
                continue
            record = json.loads((path / RECORD).read_bytes())
            if record["signature"] not in self._signatures:
                self._log(f"checkpoint {path.name} is not used: it belongs to another config or other inputs")
                continue
            return Restored(
                step=record["step"],
                path=path,
                keys=keys_of(_pieces(path)),
                state=torch.load(path / STATE, weights_only=True, map_location="cpu"),
                record=record,
            )
        return None

    def _newest_first(self) -> list[Path]:
        if not self._folder.is_dir():
            return []
        places = [(place, path) for path in self._folder.iterdir() if (place := checkpoint_place(path.name))]
        return [path for _, path in sorted(places, reverse=True)]

    def _problem(self, path: Path) -> str | None:
        try:
            files = json.loads((path / MANIFEST).read_bytes())["files"]
            for name in {TENSORS, STATE, RECORD, *files}:
                if sha256(path / name) != files[name]:
                    return f"{name} is damaged"
        except (OSError, ValueError, KeyError, TypeError) as error:
            return f"{type(error).__name__}: {error}"
        return None

    def _prune(self, newest: Path) -> None:
        for path in self._newest_first()[KEEP:]:
            if path != newest:
                shutil.rmtree(path, ignore_errors=True)
        for path in self._folder.glob(".*.partial"):
            shutil.rmtree(path, ignore_errors=True)


def write_pieces(
    folder: Path, tensors: Iterable[tuple[str, Tensor]], disk: Disk, first: str = TENSORS
) -> Iterator[tuple[Path, str]]:
    """Writes into as many files as it takes, the `first` of this name, so that what is gathered for it is never in
    memory all at once. Yields each with its sum when it has reached the disk."""
    piece: dict[str, Tensor] = {}
    number = size = 0
    for name, tensor in tensors:
        piece[name] = tensor.contiguous().cpu()  # a device full of training has no room for it
        size += tensor.nbytes
        if size >= PIECE_BYTES:
            number += 1
            disk.need(size)
            yield _write_piece(folder / _piece(first, number), piece)
            piece, size = {}, 0
    if piece or not number:
        disk.need(size)
        yield _write_piece(folder / _piece(first, number + 1), piece)


def _write_piece(path: Path, tensors: dict[str, Tensor]) -> tuple[Path, str]:
    save_file(tensors, path)
    return path, _settled(path)


def link(path: Path, folder: Path) -> Path:
    """The same file in another folder; a copy where the disk has no hard links."""
    there = folder / path.name
    try:
        os.link(path, there)
    except OSError:
        shutil.copyfile(path, there)
        sync_file(there)
    return there


def _settled(path: Path) -> str:
    """The sum of a file that has reached the disk."""
    sync_file(path)
    return sha256(path)


def _piece(first: str, number: int) -> str:
    return first.replace("00001", f"{number:05d}")


def _pieces(folder: Path, first: str = TENSORS) -> list[Path]:
    return sorted(folder.glob(first.replace("00001", "*")))


def tensors_of(files: Iterable[Path]) -> Iterator[tuple[str, Tensor]]:
    """One at a time, in the order of their keys."""
    for path in files:
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118  it is not a mapping
                yield name, file.get_tensor(name)


def keys_of(files: Iterable[Path]) -> list[str]:
    keys: list[str] = []
    for path in files:
        with safe_open(path, framework="pt") as file:
            keys += file.keys()
    return keys


def write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
