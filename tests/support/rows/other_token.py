"""A token that may do less than the tests' own."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import ApiToken
from steerboard.platform.database import new_id, transaction
from steerboard.platform.security.credentials import secret_hash


def token_headers(sessions: sessionmaker[Session], project_id: UUID, *scopes: str) -> dict[str, str]:
    """Headers of requests by a new token of these scopes."""
    secret = new_id().hex
    with transaction(sessions) as session:
        session.add(
            ApiToken(
                project_id=project_id,
                name="other",
                token_hash=secret_hash(secret),
                hint=secret[-4:],
                scopes=list(scopes),
            )
        )
    return {"Authorization": f"Bearer {secret}"}
