"""What a run may ask for rewards that come from outside. A module of its own: `stage` knows every method's config, and
a package may describe its method in a module that imports the worker's half."""

from __future__ import annotations

from pydantic import BaseModel

from steerboard_contracts.files.local_folders import LocalFolders


class RewardAccess(BaseModel):
    """What rewards from outside may reach: files below `folders`, and besides public addresses those that
    `allowed_private` names (`addresses.AllowList`). `judges`: the socket at which the supervisor asks the run's judges;
    empty without any."""

    folders: LocalFolders = LocalFolders()
    allowed_private: str = ""
    judges: str = ""
