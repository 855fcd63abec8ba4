"""Whose requests may make the server look at folders of its machine."""

from __future__ import annotations

from fastapi import Request

from steerboard.accounts.access import Access
from steerboard_contracts.files.local_folders import LocalFolders


def folders_for(request: Request, access: Access) -> LocalFolders | None:
    """What of this machine may be read for this caller; None for those who may not start runs."""
    if access.scopes.isdisjoint(("run", "admin")):
        return None
    folders: LocalFolders = request.app.state.settings.model_folders
    return folders
