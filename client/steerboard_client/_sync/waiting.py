"""Waiting until runs have ended."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from steerboard_client.errors import WaitTimeout
from steerboard_client.progress import ENDED, display_for
from steerboard_client.schemas import RunDetail, RunSummary

_FIRST_SECONDS, _LONGEST_SECONDS = 0.3, 5.0


class Followed(Protocol):
    @property
    def name(self) -> str: ...

    def renewed_runs(self) -> Sequence[RunDetail | RunSummary]: ...


def until_ended(followed: Followed, timeout: float | None, progress: bool) -> None:
    """Asks more rarely the longer it takes. Raises `WaitTimeout`; what is waited for continues."""
    began = time.monotonic()
    display = display_for(progress)
    pause = _FIRST_SECONDS
    try:
        while True:
            runs = followed.renewed_runs()
            display.show(runs)
            if all(run.state in ENDED for run in runs):
                return
            if timeout is not None and time.monotonic() - began > timeout:
                raise WaitTimeout(f"{followed.name} has not ended after {timeout:g} s; it continues.")
            time.sleep(pause)
            pause = min(_LONGEST_SECONDS, pause * 1.3)
    finally:
        display.close()
