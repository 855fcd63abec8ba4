"""The token that the hub is asked with for a project: its own, sealed, or that of the server's environment."""

from __future__ import annotations

import uuid

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.platform.security.secrets import Secrets


def set_hub_token(session: Session, secrets: Secrets, project: Project, token: str | None) -> None:
    """None takes it away."""
    project.hub_token_sealed = secrets.seal(token) if token else None
    session.flush()


def hub_token_of(session: Session, secrets: Secrets, project_id: uuid.UUID) -> str | None:
    """The project's own; None leaves it to the environment. Raises `SecretUnreadable`."""
    sealed = session.get_one(Project, project_id).hub_token_sealed
    return secrets.open(sealed) if sealed else None


def server_has_token() -> bool:
    """Whether this process has one, from HF_TOKEN or a log-in."""
    from huggingface_hub import get_token

    return get_token() is not None
