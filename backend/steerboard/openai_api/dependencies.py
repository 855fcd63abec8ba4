"""Who asks, and in which project: `AccessTo` where the path may name none."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from steerboard.accounts import idempotency
from steerboard.accounts.access import Access, Db, SignedIn, asked_project, require
from steerboard.accounts.roles import Scope


class OpenAIAccessTo:
    """Dependency of an endpoint of this API."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __call__(self, request: Request, session: Db, caller: SignedIn) -> Access:
        project, scopes = asked_project(request, session, caller)
        require(scopes, self._scope)
        # The path does not always name the project: one key in two of them is two keys.
        idempotency.begin(request, session, f"{caller.identity} {project.id}")
        return Access(project, caller.actor, scopes, caller.identity, caller.user_id)


Read = Annotated[Access, Depends(OpenAIAccessTo("read"))]
Write = Annotated[Access, Depends(OpenAIAccessTo("write"))]
Run = Annotated[Access, Depends(OpenAIAccessTo("run"))]
