"""The sign of life that probes of a container look at: a file that the heartbeat's thread touches.

Not the database's view of the worker: that one is bad too while the database is down, when a restart fixes nothing.
"""

from __future__ import annotations

import threading
from contextlib import suppress

from steerboard.platform.settings import Settings


def say_alive(settings: Settings) -> None:
    """Touch `alive_file`, where there is one. A full disk is not a reason to die."""
    if settings.alive_file is not None:
        with suppress(OSError):
            settings.alive_file.touch()


def stay_alive(settings: Settings, stopping: threading.Event) -> None:
    """Say it at each heartbeat until `stopping`."""
    say_alive(settings)
    while not stopping.wait(settings.heartbeat_seconds):
        say_alive(settings)
