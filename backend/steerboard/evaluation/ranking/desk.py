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

from steerboard.accounts.tables import Project
from steerboard.platform.access import Access, Credentials, bearer, identify, require, visible_project
from steerboard.platform.database import transaction
from steerboard.platform.errors import Forbidden
from steerboard.platform.idempotency import UnkeptRoute
from steerboard.platform.turns import in_turn

T = TypeVar("T")


@dataclass(frozen=True)
class Annotator:
    """A person who may rank in a project, and the transaction of their request."""

    session: Session
    project: Project
    user_id: uuid.UUID
    access: Access


@dataclass(frozen=True)
class Desk:
    """Where the caller of a request works, whoever that is."""

    request: Request
    project: str
    credentials: Credentials

    async def does(self, work: Callable[[Annotator], T]) -> T:
        """`work` in a transaction, committed before the answer is sent.

        Raises like `AccessTo("rank")`, and `Forbidden` (`no_person`) for tokens of nobody.
        """
        app = self.request.app
        async with app.state.ranking_turns:
            return await in_turn(app, self._do, work)

    def _do(self, work: Callable[[Annotator], T]) -> T:
        with transaction(self.request.app.state.sessions) as session:
            caller = identify(self.request, session, self.credentials)
            project, scopes = visible_project(session, caller, self.project)
            require(scopes, "rank")
            if caller.user_id is None:
                raise Forbidden("this token belongs to no person, and rankings are people's", code="no_person")
            access = Access(project, caller.actor, scopes, caller.identity)
            return work(Annotator(session, project, caller.user_id, access))


async def _desk(request: Request, project: str, credentials: Credentials) -> Desk:
    return Desk(request, project, credentials)


Ranking = Annotated[Desk, Depends(_desk)]


class RankingRoute(UnkeptRoute):
    """Who may not rank hears that, and not what is wrong with the body, which is looked at first."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        inner = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await inner(request)
            except RequestValidationError:
                await Desk(request, request.path_params["project"], await bearer(request)).does(lambda _: None)
                raise

        return handle
