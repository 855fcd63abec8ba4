from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import uvicorn
from fastapi import FastAPI

from support.patience import wait_until


@pytest.fixture
def server(app: FastAPI, token: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The API on a port of its own; the environment leads the CLI there."""
    running = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=running.run)
    thread.start()
    wait_until(lambda: running.started or not thread.is_alive(), pause=0.01)
    assert running.started
    url = f"http://127.0.0.1:{running.servers[0].sockets[0].getsockname()[1]}"
    monkeypatch.setenv("STEERBOARD_URL", url)
    monkeypatch.setenv("STEERBOARD_TOKEN", token)
    yield url
    running.should_exit = True
    thread.join()
