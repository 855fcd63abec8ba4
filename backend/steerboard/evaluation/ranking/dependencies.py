"""An annotator's way to the database: one step through the threads for all of a request.

The platform's dependencies (`Db`, `AccessTo`) take a thread for each of their steps, and a hundred annotators who rank
at once would spend most of the time on those. So here the endpoints are coroutines, and one thread admits the caller,
does the work and commits.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access, Credentials, bearer, identify, require, visible_project
from steerboard.accounts.http.routes import UnkeptRoute
from steerboard.accounts.tables import Project
from steerboard.platform.concurrency import in_turn, slot_for
from steerboard.platform.database import transaction
from steerboard.platform.http.errors import Forbidden

T = TypeVar("T")


@dataclass(frozen=True)
class Annotator:
    """A person who may rank in a project, and the transaction of their request."""

    session: Session
    project: Project
    user_id: uuid.UUID
    access: Access


@dataclass(frozen=True)
class AnnotatorAccess:
    """The project in which the caller of a request works."""

    request: Request
    project: str
    credentials: Credentials

    async def does(self, work: Callable[[Annotator], T]) -> T:
        """`work` in a transaction, committed before the answer is sent.

        Raises like `AccessTo("rank")`, and `Forbidden` (`no_person`) for tokens of a project.
        """
        async with slot_for(self.request, "rankings"):
            return await in_turn(self.request, self._do, work)

    def _do(self, work: Callable[[Annotator], T]) -> T:
        with transaction(self.request.app.state.sessions) as session:
            caller = identify(self.request, session, self.credentials)
            project, scopes = visible_project(session, caller, self.project)
            require(scopes, "rank")
            if caller.user_id is None or caller.project_id is not None:
                raise Forbidden("a project token cannot rank: rankings belong to people", code="no_person")
            access = Access(project, caller.actor, scopes, caller.identity)
            return work(Annotator(session, project, caller.user_id, access))


async def _annotator_access(request: Request, project: str, credentials: Credentials) -> AnnotatorAccess:
    return AnnotatorAccess(request, project, credentials)


Ranking = Annotated[AnnotatorAccess, Depends(_annotator_access)]


class RankingRoute(UnkeptRoute):
    """Who may not rank hears that, and not what is wrong with the body, which is looked at first."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        inner = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await inner(request)
            except RequestValidationError:
                await AnnotatorAccess(request, request.path_params["project"], await bearer(request)).does(
                    lambda _: None
                )
                raise

        return handle
