from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
import uvicorn
from agent import Where

from steerboard.mcp.boards import OwnBoards
from steerboard.mcp.http import http_app
from steerboard.mcp.server import make_server
from support.patience import wait_until


@pytest.fixture
def inside(url: str, token: str) -> Where:
    """The server as over stdio, without a process of its own."""
    return Where(make_server(OwnBoards(lambda: (url, token), "default")))


@pytest.fixture
def http(url: str, token: str) -> Iterator[Where]:
    """The server itself has no token."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    app = http_app(url, None, "127.0.0.1", port, ["agents.example"], ["https://agents.example"])
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    wait_until(lambda: server.started or not thread.is_alive(), pause=0.01)
    yield Where(f"http://127.0.0.1:{port}/mcp", token)
    server.should_exit = True
    thread.join()


@pytest.fixture(params=["inside", "http"])
def where(request: pytest.FixtureRequest) -> Where:
    server: Where = request.getfixturevalue(request.param)
    return server
