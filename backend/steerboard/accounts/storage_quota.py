"""How many bytes a project may keep."""

from __future__ import annotations

from sqlalchemy.orm import Session

from steerboard.accounts import hooks
from steerboard.accounts.tables import Project
from steerboard_contracts.errors import SteerboardError

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


class StorageQuotaReached(SteerboardError):
    """The project keeps as many bytes as it may, or would with what it was given."""

    code = "storage_quota_reached"
    status = 409
    title = "The project's storage is used up"


def refuse_beyond_storage(session: Session, project: Project, more: int = 0) -> None:
    """Called before something is stored: `more` bytes, or as yet unknown ones. Raises `StorageQuotaReached`."""
    quota = project.storage_bytes_quota
    if quota is None:
        return
    used = hooks.stored_bytes(session, project)
    if used >= quota or used + more > quota:
        rest = f", and {in_units(more)} more would not fit" if used < quota else ""
        raise StorageQuotaReached(
            f"project {project.name} keeps {in_units(used)} of the {in_units(quota)} that it may{rest}",
            hint="Delete datasets, models or runs that are no longer needed, or ask the operator of this server to "
            "raise the quota. What runs now continues.",
        )


def in_units(size: int) -> str:
    """`1.5 GB`, in powers of 1000."""
    value, place = float(size), 0
    while value >= 1000 and place < len(_UNITS) - 1:
        value, place = value / 1000, place + 1
    return f"{value:.4g} {_UNITS[place]}"
