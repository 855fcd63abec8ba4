"""Progress of what is waited for: bars by rich on terminals and in notebooks, lines elsewhere."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Sequence
from typing import Any, Protocol

from steerboard_client.schemas import RunDetail, RunSummary

ENDED = frozenset({"succeeded", "failed", "cancelled", "skipped"})
_LINE_SECONDS = 10.0


class Display(Protocol):
    def show(self, runs: Sequence[RunDetail | RunSummary]) -> None: ...

    def say(self, line: str) -> None: ...

    def close(self) -> None: ...


def display_for(progress: bool, log: bool = False) -> Display:
    if not progress:
        return _Log() if log else _Nothing()
    try:
        return _Bars()
    except ImportError:
        return _Lines()


def share_of(run: RunDetail | RunSummary) -> float:
    """How much of a run is done, 0 to 1."""
    if run.state == "succeeded":
        return 1.0
    done, total = ((run.progress or {}).get(name) or 0 for name in ("done", "total"))
    return min(1.0, done / total) if total else 0.0


def doing(run: RunDetail | RunSummary) -> str:
    """`update: 40/80 steps`, `reused`, `waiting`, or why it failed."""
    progress = run.progress or {}
    if run.state == "succeeded":
        return "reused" if run.reused_from_id else "done"
    if run.state != "running":
        return f"{run.state}: {run.reason}" if run.reason else run.state
    if not progress.get("total"):
        return "starts"
    phase = f"{progress['phase']}: " if progress.get("phase") else ""
    return f"{phase}{progress['done']}/{progress['total']} {progress.get('unit', '')}".rstrip()


class _Nothing:
    def show(self, runs: Sequence[RunDetail | RunSummary]) -> None:
        pass

    def say(self, line: str) -> None:
        pass

    def close(self) -> None:
        pass


class _Log(_Nothing):
    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)


class _Bars:
    """Raises `ImportError` where rich is not installed."""

    def __init__(self) -> None:
        rich: Any = importlib.import_module("rich.progress")
        columns = (rich.TextColumn("{task.description}"), rich.BarColumn(), rich.TextColumn("{task.fields[doing]}"))
        console = importlib.import_module("rich.console").Console(stderr=True)
        if not (console.is_terminal or console.is_jupyter):
            raise ImportError("lines are better here")
        self._bars = rich.Progress(*columns, console=console)
        self._tasks: dict[Any, Any] = {}
        self._bars.start()

    def show(self, runs: Sequence[RunDetail | RunSummary]) -> None:
        for run in runs:
            if run.id not in self._tasks:
                self._tasks[run.id] = self._bars.add_task(run.name, total=1.0, doing="")
            self._bars.update(self._tasks[run.id], completed=share_of(run), doing=doing(run))

    def say(self, line: str) -> None:
        self._bars.console.print(line, markup=False, highlight=False)

    def close(self) -> None:
        self._bars.stop()


class _Lines(_Log):
    """A line on standard error when a state changes, and every ten seconds."""

    def __init__(self) -> None:
        self._shown: dict[Any, tuple[str, float]] = {}

    def show(self, runs: Sequence[RunDetail | RunSummary]) -> None:
        for run in runs:
            state, at = self._shown.get(run.id, ("", 0.0))
            moves = run.state == "running" and time.monotonic() - at > _LINE_SECONDS
            if run.state != state or moves:
                self._shown[run.id] = (run.state, time.monotonic())
                self.say(f"{run.name}: {doing(run)}")
