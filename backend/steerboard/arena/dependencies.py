"""Who takes part in battles: people, since a vote is someone's."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends

from steerboard.accounts.access import Access, AccessTo, SignedIn
from steerboard.accounts.tables import Project
from steerboard.platform.http.errors import Forbidden


@dataclass(frozen=True)
class Voter:
    access: Access
    user_id: uuid.UUID

    @property
    def project(self) -> Project:
        return self.access.project


def _voter(access: Annotated[Access, Depends(AccessTo("rank"))], caller: SignedIn) -> Voter:
    """Raises like `AccessTo("rank")`, and `Forbidden` (`no_person`) for tokens of a project."""
    if caller.user_id is None or caller.project_id is not None:
        raise Forbidden("a project token cannot vote: votes belong to people", code="no_person")
    return Voter(access, caller.user_id)


Voting = Annotated[Voter, Depends(_voter)]
