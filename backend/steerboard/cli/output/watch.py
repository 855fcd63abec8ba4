"""Following a pipeline or a run to its end: the event stream as the wake-up, polling as the fallback."""

from __future__ import annotations

import datetime as dt
import queue
import sys
import threading
from collections.abc import Callable, Container
from functools import partial
from typing import Any

import typer

from steerboard.cli.client import Client
from steerboard.cli.output.console import EXIT_INTERRUPTED, console
from steerboard.cli.output.progress import ENDED, Display, Run, display_for

POLL_SECONDS = 2.0
POLL_SECONDS_WITH_EVENTS = 10.0
REDRAW_SECONDS = 1.0


class EventTap:
    """Reads the project's event stream in a thread of its own. `alive` is False once the stream has broken."""

    def __init__(self, client: Client) -> None:
        self.events: queue.Queue[dict[str, Any]] = queue.Queue()
        self.alive = True
        self._client = client
        threading.Thread(target=self._read, name="events", daemon=True).start()

    def _read(self) -> None:
        try:
            for event in self._client.events():
                self.events.put(event)
        except Exception:
            pass
        finally:
            self.alive = False


def follow(client: Client, load: Callable[[], list[Run]], display: Display, until: Container[str] = ENDED) -> list[Run]:
    """Show runs until all have come into a state of `until`, and return them as they are then. `load` fetches them all
    again.

    Raises what the client raises when the server goes away.
    """
    tap = EventTap(client)
    runs = {run["id"]: run for run in load()}
    with display:
        while True:
            display.show([with_seconds(run) for run in runs.values()])
            if all(run["state"] in until for run in runs.values()):
                return list(runs.values())
            if _take_events(tap, runs, POLL_SECONDS_WITH_EVENTS if tap.alive else POLL_SECONDS, display):
                runs = {run["id"]: run for run in load()}


def wait_for(client: Client, run: Run, until: Container[str] = ENDED) -> Run:
    """Follow one run until its state is one of `until`, and return it. Progress goes to standard error, so the result
    can be piped."""
    try:
        load = partial(client.get, f"runs/{run['id']}")
        return follow(client, lambda: [load()], display_for(console(stderr=True)), until)[0]
    except KeyboardInterrupt:
        print(f"\nThe run is still running. To cancel it: steerboard runs cancel {run['id']}", file=sys.stderr)
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _take_events(tap: EventTap, runs: dict[str, Run], patience: float, display: Display) -> bool:
    """Apply progress as it comes; True when everything is to be fetched again."""
    waited = 0.0
    while waited < patience:
        try:
            event = tap.events.get(timeout=REDRAW_SECONDS)
        except queue.Empty:
            waited += REDRAW_SECONDS
            display.show([with_seconds(run) for run in runs.values()])
            if not tap.alive and waited >= POLL_SECONDS:
                return True
            continue
        payload = event.get("payload") or {}
        run = runs.get(str(payload.get("run_id")))
        if run is None:
            if event.get("type") == "run.state" and payload.get("parent_id") in runs:
                return True
            continue
        if event.get("type") == "run.progress":
            run["progress"] = payload.get("progress")
            display.show([with_seconds(run) for run in runs.values()])
        elif event.get("type") == "run.state":
            return True
    return True


def with_seconds(run: Run) -> Run:
    """The run or pipeline with `seconds`: how long it has been or was at work; a reused run was not at all."""
    if run.get("started_at") is None or run.get("reused_from_id"):
        return {**run, "seconds": None}
    start = dt.datetime.fromisoformat(run["started_at"])
    end = dt.datetime.fromisoformat(run["ended_at"]) if run.get("ended_at") else dt.datetime.now(dt.UTC)
    return {**run, "seconds": max(0.0, (end - start).total_seconds())}
