"""A stream ends with the server, also one whose reader came a moment before."""

from __future__ import annotations

import time

import httpx
import pytest
from fastapi import FastAPI

from support.patience import PATIENCE
from support.processes.command_line import url

__all__ = ["url"]


@pytest.mark.parametrize("milliseconds", [0, 1, 2, 3, 5, 8])
def test_a_stream_that_has_just_begun_ends_when_the_server_stops(
    milliseconds: int, app: FastAPI, url: str, token: str
) -> None:
    """The client of Redis may be connecting then, and cancelled at a bad moment it never ends."""
    headers = {"Authorization": f"Bearer {token}"}
    address = f"{url}/api/v1/projects/default/events"
    with httpx.stream("GET", address, headers=headers, timeout=PATIENCE) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "retry: 1000"
        time.sleep(milliseconds / 1000)
        app.state.stopping.set()
        assert "".join(lines) == ""
