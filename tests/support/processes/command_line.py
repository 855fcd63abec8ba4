"""Fixtures for the command line against the API on a port of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from fastapi import FastAPI

from steerboard.cli.main import main
from support.servers.served_app import served


@pytest.fixture
def url(app: FastAPI) -> Iterator[str]:
    with served(app) as address:
        yield address


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
