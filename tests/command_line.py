"""Fixtures for the command line against the API on a port of its own."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import uvicorn
from fastapi import FastAPI

from steerboard.cli.main import main


@pytest.fixture
def url(app: FastAPI) -> Iterator[str]:
    running = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=running.run)
    thread.start()
    while not running.started:
        assert thread.is_alive()
        time.sleep(0.01)
    yield f"http://127.0.0.1:{running.servers[0].sockets[0].getsockname()[1]}"
    app.state.stopping.set()
    running.should_exit = True
    thread.join()


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


Steerboard = Callable[..., Done]


@pytest.fixture
def steerboard(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Steerboard:
    """The command as a shell would run it, in this process: starting one takes a second."""

    def run(url: str, token: str, *arguments: str) -> Done:
        monkeypatch.setenv("STEERBOARD_URL", url)
        monkeypatch.setenv("STEERBOARD_TOKEN", token)
        monkeypatch.setattr(sys, "argv", ["steerboard", *arguments])
        capsys.readouterr()
        code: object = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
        assert isinstance(code, int)
        return Done(code, *capsys.readouterr())

    return run
