"""Waiting until runs have ended, with their progress and, if asked for, their log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Protocol

from steerboard_client._async.connection import Connection
from steerboard_client.errors import WaitTimeout
from steerboard_client.progress import ENDED, Display, display_for
from steerboard_client.schemas import LogLine, RunDetail, RunSummary
from steerboard_client.wire import path_of

_FIRST_SECONDS, _LONGEST_SECONDS = 0.3, 5.0
_LINES = 200


class Followed(Protocol):
    @property
    def name(self) -> str: ...

    async def renewed_runs(self) -> Sequence[RunDetail | RunSummary]: ...


async def until_ended(
    followed: Followed, connection: Connection, timeout: float | None, progress: bool, log: bool
) -> None:
    """Asks more rarely the longer it takes. Raises `WaitTimeout`; what is waited for continues."""
    began = time.monotonic()
    display = display_for(progress, log)
    lines = NewLines(connection)
    pause = _FIRST_SECONDS
    try:
        while True:
            runs = await followed.renewed_runs()
            if log:
                await lines.show(runs, display)
            display.show(runs)
            if all(run.state in ENDED for run in runs):
                return
            if timeout is not None and time.monotonic() - began > timeout:
                raise WaitTimeout(f"{followed.name} has not ended after {timeout:g} s; it continues.")
            await asyncio.sleep(pause)
            pause = min(_LONGEST_SECONDS, pause * 1.3)
    finally:
        display.close()


class NewLines:
    """The lines of logs that have not been shown; between two calls at most the last 200 of a run."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._last: dict[Any, int] = {}
        self._ended: set[Any] = set()

    async def show(self, runs: Sequence[RunDetail | RunSummary], display: Display) -> None:
        for run in runs:
            if run.id in self._ended or run.reused_from_id or run.state in ("pending", "queued"):
                continue
            path = f"{path_of('runs', str(run.id))}/logs"
            page = await self._connection.get(path, limit=_LINES, newest_first=True)
            for line in reversed([LogLine.model_validate(row) for row in page["items"]]):
                if line.id > self._last.get(run.id, 0):
                    self._last[run.id] = line.id
                    display.say(f"{run.name}: {line.message}")
            if run.state in ENDED:
                self._ended.add(run.id)
