"""A session of a rollout with an OpenEnv server (`openenv-core` 0.3), which lasts as long as its WebSocket. The HTTP
routes `/reset` and `/step` of such a server know no sessions.

Sent: {"type": "reset" | "step", "data": ...} and {"type": "close"}. Received: {"type": "observation", "data":
{"observation", "reward", "done"}} or {"type": "error", "data": {"message", "code", "errors"}}.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpcore
import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, WebSocketException

from steerboard_contracts.network.addresses import AllowList
from steerboard_contracts.network.safe_http import open_socket, ssl_context
from steerboard_workers.alignment.online.environment_protocol import LONGEST_OBSERVATION
from steerboard_workers.alignment.online.sandbox import SHOWN

# The bytes of a reply, which may have more fields than the one that is read.
_REPLY = 32 * LONGEST_OBSERVATION
_TOO_BIG = 1009
_CLOSE_SECONDS = 5.0
# Codes of a server that has no session for us, whatever was sent.
FULL = "CAPACITY_REACHED"
_NO_SESSION = (FULL, "FACTORY_ERROR", "SESSION_ERROR")


class SessionLost(Exception):
    """There is no connection, or no longer. `full`: the server has as many sessions as it takes."""

    def __init__(self, problem: str, *, full: bool = False) -> None:
        super().__init__(problem)
        self.full = full


class Refused(Exception):
    """The server does not do what it was asked. `code` as in its error."""

    def __init__(self, code: str, problem: str) -> None:
        super().__init__(problem)
        self.code = code


class WrongReply(Exception):
    """The reply is not one of the protocol."""


@dataclass(frozen=True)
class Session:
    """`Session.open` makes one."""

    socket: ClientConnection

    @classmethod
    async def open(cls, url: str, allowed: AllowList, seconds: float) -> Session:
        """`url` as `check_url` passes it. The connection goes to an address that was checked, and follows no redirect.

        Raises `SessionLost`, `AddressRefused`."""
        parsed = httpx.URL(url)
        given: dict[str, Any] = {"ssl": ssl_context()} if parsed.scheme == "https" else {}
        try:
            given["sock"] = await asyncio.to_thread(open_socket, allowed, url, timeout_seconds=seconds)
            socket = await connect(
                f"ws{url.removeprefix('http').rstrip('/')}/ws",
                proxy=None,
                compression=None,
                open_timeout=seconds,
                close_timeout=_CLOSE_SECONDS,
                # Training may hold this process for longer than a server waits; every call has its own limit.
                ping_interval=None,
                max_size=_REPLY,
                user_agent_header="steerboard",
                **given,
            )
        except (OSError, WebSocketException, ValueError, httpcore.ConnectError, httpcore.ConnectTimeout) as error:
            raise SessionLost(shown(error)) from None
        return cls(socket)

    async def ask(self, kind: str, data: dict[str, Any]) -> dict[str, Any]:
        """The data of the reply. Raises `SessionLost`, `Refused`, `WrongReply`."""
        try:
            # What a server sent before it ended a session can still be read.
            with suppress(ConnectionClosed):
                await self.socket.send(json.dumps({"type": kind, "data": data}))
            received = await self.socket.recv()
        except ConnectionClosed as error:
            if error.sent is not None and error.sent.code == _TOO_BIG:
                raise WrongReply(f"its reply has more than {_REPLY:,} bytes") from None
            raise SessionLost(shown(error)) from None
        try:
            reply = json.loads(received)
            kind, given = reply["type"], reply["data"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise WrongReply(f"its reply is no message of OpenEnv: {received[:SHOWN]!r}") from None
        if kind == "observation" and isinstance(given, dict):
            return given
        if kind != "error" or not isinstance(given, dict):
            raise WrongReply(f"its reply is no observation: {received[:SHOWN]!r}")
        code, problem = str(given.get("code")), _problem(given)
        if code in _NO_SESSION:
            raise SessionLost(problem, full=code == FULL)
        raise Refused(code, problem)

    async def close(self) -> None:
        """Waits until the server has ended the session, so that its place is free, or until it has been too slow."""
        with suppress(ConnectionClosed, TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self.socket.send('{"type": "close"}')
                await self.socket.wait_closed()
        await self.socket.close()

    def abandon(self) -> None:
        """Waits for nothing, since the server has been too slow already or is away."""
        self.socket.transport.abort()


def shown(error: Exception) -> str:
    return (str(error) or type(error).__name__)[:SHOWN]


def _problem(given: dict[str, Any]) -> str:
    """The message, and which fields it is about, as pydantic lists them."""
    faults = given.get("errors")
    faults = [fault for fault in faults if isinstance(fault, dict)] if isinstance(faults, list) else []
    listed = "; ".join(f"{fault.get('loc')}: {fault.get('msg')}" for fault in faults[:3])
    message = str(given.get("message") or given.get("code"))
    return f"{message}: {listed}"[: 2 * SHOWN] if listed else message[:SHOWN]
