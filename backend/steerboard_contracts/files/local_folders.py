"""Model folders of this machine that people may name: below roots that the operator allows, wherever links lead.

The opened file is judged, not its name. It is first opened without effect (O_PATH: no device, no FIFO notices), then
the kernel is asked for its real path, and only that very file is read. So nothing is gained by exchanging a
link after the check. For paths elsewhere the error is the same whether they exist or not.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from pydantic import BaseModel, ConfigDict

from steerboard_contracts.errors import BadInput, ErrorLocation, UnsafeModelFile
from steerboard_contracts.files.base_sources import TEMPLATES_FOLDER, gguf_to_read, is_model_file

_LONGEST_PATH = 4096
_MOST_ENTRIES = 10_000
_READ_WHOLE = 1 << 20
_SHOWN = 200


class FolderNotAllowed(BadInput):
    """A folder is, or leads, outside those that the operator allows, or does not exist; the error hides which."""

    code = "folder_not_allowed"
    title = "The folder cannot be read here"


class LocalFolders(BaseModel):
    """Folders below `roots` may be read, anything below `never` may not. Without roots nothing may."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    roots: tuple[Path, ...] = ()
    never: tuple[Path, ...] = ()

    @contextmanager
    def open(self, path: str) -> Iterator[ModelFolder]:
        """Raises `FolderNotAllowed`."""
        spelled = _spelled(path)
        # What is spelled as lying elsewhere is not even looked for.
        if spelled is None or not any(_below(spelled, str(at)) for root in self.roots for at in _places(root)):
            raise _not_allowed(path)
        try:
            handle = os.open(spelled, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except (OSError, ValueError):
            raise _not_allowed(path) from None
        try:
            if not self.allow(_where(handle)):
                raise _not_allowed(path)
            yield ModelFolder(self, handle)
        finally:
            os.close(handle)

    def read(self, path: str, limit: int) -> bytes:
        """A plain file of at most `limit` bytes. Raises `FolderNotAllowed`, also for a larger one."""
        refused = FolderNotAllowed(
            f"there is no file {path[:_SHOWN]!r} of at most {limit} bytes below those folders that may be read here",
            hint="The operator allows folders of reward functions with STEERBOARD_REWARD_ROOTS, on every worker.",
        )
        spelled = _spelled(path)
        if spelled is None or not any(_below(spelled, str(at)) for root in self.roots for at in _places(root)):
            raise refused
        try:
            handle = os.open(spelled, os.O_PATH | os.O_CLOEXEC)
        except (OSError, ValueError):
            raise refused from None
        try:
            if not (self.allow(_where(handle)) and stat.S_ISREG(os.fstat(handle).st_mode)):
                raise refused
            with os.fdopen(os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_CLOEXEC), "rb") as file:
                data = file.read(limit + 1)
        except OSError:
            raise refused from None
        finally:
            os.close(handle)
        if len(data) > limit:
            raise refused
        return data

    def allow(self, real: str) -> bool:
        """Whether a path without links may be read."""
        allowed = any(_below(real, os.path.realpath(root)) for root in self.roots)
        return allowed and not any(_below(real, os.path.realpath(place)) for place in self.never)


class ModelFolder:
    """An open folder. `path` is its real path, `names` are those of its model files, sorted."""

    def __init__(self, allowed: LocalFolders, handle: int) -> None:
        """Raises `UnsafeModelFile` for links that lead out of the allowed folders and for files that are not plain
        ones, and `BadInput` (`not_a_model`)."""
        self._allowed = allowed
        self._handle = handle
        self.path = _where(handle)
        self.names = self._examined()

    def open(self, name: str) -> BinaryIO:
        """One of `names`. Raises `UnsafeModelFile` when it has been exchanged, `BadInput` (`not_a_model`)."""
        handle = self._reached(name)
        try:
            # Opens what was judged, and does not resolve its name once more.
            return os.fdopen(os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_CLOEXEC), "rb")
        except OSError as error:
            raise BadInput(f"{name} cannot be read: {error.strerror}", code="not_a_model") from None
        finally:
            os.close(handle)

    def check(self, chosen: str | None = None) -> str | None:
        """The GGUF file that is the model; None where config and safetensors are. Raises as `gguf_to_read` does."""
        return gguf_to_read(self.names, f"`{self.path}`", chosen)

    def fingerprint(self) -> str:
        """SHA-256 over names and contents; of large files over size and time of change."""
        digest = hashlib.sha256()
        for name in self.names:
            with self.open(name) as file:
                about = os.fstat(file.fileno())
                small = about.st_size <= _READ_WHOLE
                state = file.read(_READ_WHOLE) if small else str(about.st_mtime_ns).encode()
            digest.update(f"{name}\x00{about.st_size}\x00".encode() + hashlib.sha256(state).digest())
        return digest.hexdigest()

    def _examined(self) -> list[str]:
        try:
            # Through the name of an open folder: its own may lead elsewhere by now.
            entries = os.listdir(f"/proc/self/fd/{self._handle}")
        except OSError as error:
            raise BadInput(f"`{self.path}` cannot be read: {error.strerror}", code="not_a_model") from None
        if len(entries) > _MOST_ENTRIES:
            raise BadInput(f"`{self.path}` has {len(entries)} files, so it is not a model folder", code="not_a_model")
        faults, names = [], []
        for name in sorted([*entries, *self._templates(entries)]):
            fault = self._fault(name)
            if fault is not None:
                faults.append(ErrorLocation(location=name, message=fault))
            elif is_model_file(name) and not self._is_folder(name):
                names.append(name)
        if faults:
            raise UnsafeModelFile(
                f"{faults[0].location} {faults[0].message}"
                + (f", and {len(faults) - 1} more are refused" if len(faults) > 1 else ""),
                hint="Put the files themselves into the folder.",
                errors=faults[:20],
            )
        return names

    def _templates(self, entries: list[str]) -> list[str]:
        if TEMPLATES_FOLDER not in entries or not self._is_folder(TEMPLATES_FOLDER):
            return []
        try:
            handle = os.open(
                TEMPLATES_FOLDER, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._handle
            )
        except OSError:
            return []
        try:
            paths = [f"{TEMPLATES_FOLDER}/{name}" for name in os.listdir(handle)]
        finally:
            os.close(handle)
        return [name for name in paths if is_model_file(name)][:_MOST_ENTRIES]

    def _fault(self, name: str) -> str | None:
        """Every link is followed, also one whose target no one would read."""
        try:
            kind = os.stat(name, dir_fd=self._handle, follow_symlinks=False).st_mode
            if stat.S_ISLNK(kind) or is_model_file(name):
                os.close(self._reached(name, folders=True))
        except OSError:
            return "disappeared while it was being read"
        except UnsafeModelFile as error:
            return error.detail
        return None

    def _is_folder(self, name: str) -> bool:
        with suppress(OSError):
            return stat.S_ISDIR(os.stat(name, dir_fd=self._handle).st_mode)
        return False

    def _reached(self, name: str, folders: bool = False) -> int:
        """A descriptor (O_PATH) of what the name leads to. Raises `UnsafeModelFile`."""
        try:
            handle = os.open(name, os.O_PATH | os.O_CLOEXEC, dir_fd=self._handle)
        except OSError:
            raise UnsafeModelFile("leads outside of the folders that may be read") from None
        kind = os.fstat(handle).st_mode
        fault = None
        if not self._allowed.allow(_where(handle)):
            fault = "leads outside of the folders that may be read"
        elif not (stat.S_ISREG(kind) or (folders and stat.S_ISDIR(kind))):
            fault = "is not a plain file"
        if fault is not None:
            os.close(handle)
            raise UnsafeModelFile(fault)
        return handle


def _spelled(path: str) -> str | None:
    """Absolute and without `..`; None for what no path of ours can be."""
    if len(path) > _LONGEST_PATH or not path.isprintable():
        return None
    return os.path.abspath(os.path.expanduser(path) if path == "~" or path.startswith("~/") else path)


def _places(root: Path) -> tuple[str, str]:
    """The folder as the operator wrote it, and its real path: people may name either."""
    return os.path.abspath(root), os.path.realpath(root)


def _where(handle: int) -> str:
    """The real path of an open file, as the kernel knows it."""
    return os.readlink(f"/proc/self/fd/{handle}")


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _not_allowed(path: str) -> FolderNotAllowed:
    shown = path if len(path) <= _SHOWN else f"{path[:_SHOWN]}..."
    return FolderNotAllowed(
        f"there is no folder {shown!r} below those that may be read here (STEERBOARD_MODEL_ROOTS)",
        hint="Put it below a folder that the operator allows, or let the command line upload it: --set base=FOLDER.",
    )
