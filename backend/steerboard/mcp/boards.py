"""Whose board a call works on: over stdio the one that the command line signed in to, over HTTP the caller's."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.mcpserver import Context

from steerboard.mcp.refusals import Refused
from steerboard_client.aio import Board, connect

PROJECT_HEADER = "x-steerboard-project"
DEFAULT_PROJECT = "default"
_PROJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class Boards(Protocol):
    async def take(self, ctx: Context[Any, Any]) -> Board:
        """The board of a call. Raises `SteerboardError`."""
        ...

    async def put_back(self, board: Board) -> None: ...

    async def aclose(self) -> None: ...


Ctx = Context[Boards, Any]


@asynccontextmanager
async def board_of(ctx: Ctx) -> AsyncIterator[Board]:
    boards = ctx.request_context.lifespan_context
    board = await boards.take(ctx)
    try:
        yield board
    finally:
        await boards.put_back(board)


class OwnBoards:
    """One board for all calls. `address`: URL and token, asked for each time, since a server that is started again has
    others."""

    def __init__(self, address: Callable[[], tuple[str, str]], project: str) -> None:
        self._address = address
        self._project = project
        self._board: Board | None = None
        self._at: tuple[str, str] | None = None

    async def take(self, ctx: Context[Any, Any]) -> Board:
        at = self._address()
        if self._board is None or at != self._at:
            # The former one may still be used by a call, and is left to the garbage collector.
            self._board, self._at = connect(*at, project=self._project), at
        return self._board

    async def put_back(self, board: Board) -> None:
        """It stays open for the next call."""

    async def aclose(self) -> None:
        if self._board is not None:
            board, self._board = self._board, None
            await board.aclose()


class CallersBoards:
    """A board for each call, by the bearer token of its own request. The server has no token."""

    def __init__(self, url: str, project: str | None) -> None:
        self._url = url
        self._project = project

    async def take(self, ctx: Context[Any, Any]) -> Board:
        request = ctx.request_context.request
        user = request.scope.get("user") if request is not None else None
        if request is None or not isinstance(user, AuthenticatedUser):
            raise Refused("The call has no token.", code="no_token", hint="Send `Authorization: Bearer TOKEN`.")
        token = user.access_token
        project = request.headers.get(PROJECT_HEADER) or self._project
        return connect(self._url, token.token, project=_named(project) if project else _only(token.claims))

    async def put_back(self, board: Board) -> None:
        await board.aclose()

    async def aclose(self) -> None:
        """None is open between calls."""


def _named(project: str) -> str:
    if not _PROJECT.fullmatch(project):
        raise Refused(
            f"{project!r} names no project.", code="bad_project", hint=f"Correct the header {PROJECT_HEADER}."
        )
    return project


def _only(claims: dict[str, Any] | None) -> str:
    """The project that a token is for. One that is for several means the default one."""
    projects = list((claims or {}).get("projects", []))
    if not projects or DEFAULT_PROJECT in projects:
        return DEFAULT_PROJECT
    if len(projects) == 1:
        return str(projects[0])
    raise Refused(
        f"The token is for several projects: {', '.join(map(str, projects[:20]))}.",
        code="choose_project",
        hint=f"Name one in the header {PROJECT_HEADER}.",
    )
