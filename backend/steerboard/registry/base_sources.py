"""The places of base models that are not in the registry: folders of this machine, and folders that were uploaded."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.registry.uploads import service as uploads
from steerboard_contracts.errors import BadInput
from steerboard_contracts.files.base_sources import RANDOM_BASES, base_place, source_type
from steerboard_contracts.files.local_folders import LocalFolders


class PinnedSource(NamedTuple):
    """Fields of the config that imports a base model."""

    source: str
    fingerprint: str | None = None
    """The hash of what a folder holds."""


def pinned(session: Session, project: Project, source: str, folders: LocalFolders | None) -> PinnedSource:
    """The source by its real path, with what its folder holds now. Without `folders` nothing is looked at.

    Raises `FolderNotAllowed`, `UnsafeModelFile`, `SeveralGgufFiles`, `UnsupportedGguf`, and `BadInput` (`not_a_model`,
    `unknown_model`).
    """
    kind = source_type(source)
    if kind is None:
        raise BadInput(
            f"there is no base model {source[:200]!r}",
            code="unknown_model",
            hint=f"Give {RANDOM_BASES[0]}, a folder that the server may read, or a hub name like org/name.",
        )
    if kind == "upload":
        uploads.finished(session, project, source)
    elif kind == "folder" and folders is not None:
        place, file = base_place(source)
        with folders.open(place) as folder:
            folder.check(file)
            return PinnedSource(f"{folder.path}/{file}" if file else folder.path, folder.fingerprint())
    return PinnedSource(source)
