"""An agent: the SDK's own client, over each transport and in each of the protocol's two eras."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, TextContent

from support.patience import PATIENCE

COMMAND = str(Path(sys.executable).with_name("steerboard"))
Answer = Literal["accept", "decline", "cancel", "unchecked"] | None


@dataclass(frozen=True)
class Where:
    """A server for agents: one in this process, one at an address, or one that is started for each connection.

    `mode`: which era of the protocol the client speaks."""

    server: MCPServer[Any] | str | dict[str, str]
    token: str = ""
    mode: str = "auto"
    headers: tuple[tuple[str, str], ...] = ()


class Agent:
    """Calls tools. `asked`: the questions that its user got."""

    def __init__(self, client: Client, asked: list[str]) -> None:
        self.client = client
        self.asked = asked

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The answer of a call that must succeed."""
        result = await self.result(tool, **arguments)
        assert not result.is_error, result.content
        return _body(result)

    async def refused(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The error of a call that must fail."""
        result = await self.result(tool, **arguments)
        assert result.is_error, result.content
        error: dict[str, Any] = _body(result)["error"]
        return error

    async def result(self, tool: str, **arguments: Any) -> CallToolResult:
        return await self.client.call_tool(tool, arguments)


def _body(result: CallToolResult) -> dict[str, Any]:
    """Programs and models get the same."""
    (text,) = result.content
    assert isinstance(text, TextContent)
    body: dict[str, Any] = json.loads(text.text)
    assert body == result.structured_content
    return body


@asynccontextmanager
async def connected(where: Where, user: Answer = None) -> AsyncIterator[Agent]:
    """`user`: what the agent's user answers; without one, the client cannot ask."""
    asked: list[str] = []

    async def answer(_: Any, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        if user == "unchecked":
            return ElicitResult(action="accept", content={"confirm": False})
        assert user is not None
        return ElicitResult(action=user, content={"confirm": True} if user == "accept" else None)

    options: dict[str, Any] = {"mode": where.mode, "elicitation_callback": answer if user else None}
    options["read_timeout_seconds"] = PATIENCE
    if not isinstance(where.server, str):
        started = where.server
        if isinstance(started, dict):
            started = StdioServerParameters(command=COMMAND, args=["mcp"], env=started)
        async with Client(started, **options) as client:
            yield Agent(client, asked)
        return
    headers = {"Authorization": f"Bearer {where.token}", **dict(where.headers)}
    async with create_mcp_http_client(headers=headers) as http:
        async with Client(streamable_http_client(where.server, http_client=http), **options) as client:
            yield Agent(client, asked)


def ask(where: Where, work: Callable[[Agent], Awaitable[Any]], user: Answer = None) -> Any:
    """What an agent does, from outside of an event loop."""

    async def main() -> Any:
        with anyio.fail_after(PATIENCE):
            async with connected(where, user) as agent:
                return await work(agent)

    try:
        return anyio.run(main)
    except BaseExceptionGroup as group:
        raise _first(group) from None


def _first(error: BaseException) -> BaseException:
    """What went wrong in one of the client's tasks."""
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


@contextmanager
def serving(environment: dict[str, str], *options: str) -> Iterator[str]:
    """The address of `steerboard mcp --http`."""
    command = [COMMAND, "mcp", "--http", "--port", "0", *options]
    with subprocess.Popen(
        command, env=environment | {"PYTHONUNBUFFERED": "1"}, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        address = re.search(r"http://\S+/mcp", line)
        try:
            assert address, line
            yield address[0]
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0


def environment_of(url: str, token: str | None, home: Path) -> dict[str, str]:
    """What a machine has that knows the server by these alone."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("STEERBOARD_")}
    known = {"STEERBOARD_URL": url, "STEERBOARD_HOME": str(home)}
    return clean | known | ({} if token is None else {"STEERBOARD_TOKEN": token})
