"""What accounts hand to the domains above them."""

from __future__ import annotations

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project, User
from steerboard.platform.hooks import Hook

# Someone is no longer a member: revokes the links without sign-in that they made. Returns their ids.
revoke_links: Hook[[Session, Project, User], list[str]] = Hook("accounts.revoke_links")

# How many bytes a project keeps.
stored_bytes: Hook[[Session, Project], int] = Hook("accounts.stored_bytes")
