"""Live progress of a pipeline: a bar for every stage on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

ENDED = ("succeeded", "failed", "cancelled", "skipped")
STYLES = {
    "succeeded": "green",
    "failed": "red",
    "cancelled": "yellow",
    "skipped": "dim",
    "paused": "yellow",
    "running": "cyan",
}
LINE_SECONDS = 10.0
_SHORTEST_DOING = 8

Run = dict[str, Any]


class Display(Protocol):
    """Gets every run as the API shows it, as often as anything is known."""

    def __enter__(self) -> Display: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, runs: list[Run]) -> None: ...

    def tell(self, message: str) -> None: ...


def display_for(console: Console) -> Display:
    return Bars(console) if console.is_terminal else Lines(console)


def fraction(run: Run) -> float:
    """How much of a stage is done, 0 to 1."""
    if run["state"] == "succeeded":
        return 1.0
    progress = run.get("progress") or {}
    total = progress.get("total") or 0
    return min(1.0, progress.get("done", 0) / total) if total else 0.0


def doing(run: Run) -> str:
    """`40/80 steps`, `reused`, `waits`, or the reason of a failure."""
    state, progress = run["state"], run.get("progress") or {}
    if state == "succeeded":
        return "reused" if run.get("reused_from_id") else "done"
    if state in ENDED:
        return f"{state}: {run.get('reason', '')}"
    if state == "pending" and progress.get("total"):
        return f"{progress['done']}/{progress['total']} {progress['unit']}"
    if state != "running":
        again = f" (attempt {run['attempt']} failed)" if run.get("attempt") else ""
        return ("waiting for a worker" if state == "queued" else "waiting") + again
    if not progress.get("total"):
        return "starts"
    phase = f", {progress['phase']}" if progress.get("phase") else ""
    return f"{progress['done']}/{progress['total']} {progress.get('unit', '')}{phase}"


class _Stage(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(task.description, style=STYLES.get(task.fields["state"], "dim"))


class _Doing(ProgressColumn):
    """Cut to what the terminal leaves, so that a bar keeps to its line."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self._width = width

    def render(self, task: Task) -> Text:
        text = Text(task.fields["doing"], no_wrap=True, style="red" if task.fields["state"] == "failed" else "")
        text.truncate(self._width, overflow="ellipsis")
        return text


class Bars:
    """One bar for each stage, in place."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._tasks: dict[str, Any] = {}
        self._longest = 0
        self._progress: Progress | None = None

    def __enter__(self) -> Bars:
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()

    def _start(self, runs: list[Run]) -> Progress:
        width = self._console.width
        bar = 0 if width < 70 else 20 if width < 100 else 40
        longest = max(len(run["name"]) for run in runs)
        bars = [BarColumn(bar_width=bar)] if bar else []
        # The columns are one space apart: the name, perhaps a bar, 4 for the percentage, 7 for the time.
        left = width - longest - 5 - 8 - (bar + 1 if bar else 0) - 1
        progress = Progress(
            _Stage(),
            *bars,
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[seconds]:>7}"),
            *([_Doing(left)] if left >= _SHORTEST_DOING else []),
            console=self._console,
            expand=False,
        )
        progress.start()
        return progress

    def show(self, runs: list[Run]) -> None:
        if self._progress is None:
            self._progress = self._start(runs)
        for run in runs:
            fields = {"state": run["state"], "doing": doing(run), "seconds": seconds_text(run)}
            if run["id"] not in self._tasks:
                self._tasks[run["id"]] = self._progress.add_task(run["name"], total=1.0, **fields)
            self._progress.update(self._tasks[run["id"]], completed=fraction(run), **fields)

    def tell(self, message: str) -> None:
        self._console.print(message)


class Lines:
    """A line for each change of state, and now and then one for progress."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._states: dict[str, str] = {}
        self._told: dict[str, tuple[float, str]] = {}

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self, runs: list[Run]) -> None:
        now = time.monotonic()
        for run in runs:
            if self._states.get(run["id"]) != run["state"]:
                self._states[run["id"]] = run["state"]
                if run["state"] not in ("pending", "queued"):
                    self._line(run, f"{run['state']}{_after(run)}")
                    self._told[run["id"]] = (now, doing(run))
            elif run["state"] == "running":
                last, words = self._told.get(run["id"], (0.0, ""))
                if now - last >= LINE_SECONDS and doing(run) != words:
                    self._told[run["id"]] = (now, doing(run))
                    self._line(run, f"{100 * fraction(run):.0f}%, {doing(run)}")

    def _line(self, run: Run, words: str) -> None:
        self._console.print(f"{run['name']}: {words}", markup=False, highlight=False, soft_wrap=True)

    def tell(self, message: str) -> None:
        self._console.print(message, soft_wrap=True)


def _after(run: Run) -> str:
    if run["state"] == "succeeded":
        return " (reused)" if run.get("reused_from_id") else f" in {seconds_text(run)}"
    return f": {run['reason']}" if run["state"] in ENDED else ""


def seconds_text(run: Run) -> str:
    """How long the run has been or was at work, `12 s` or `3:05`; empty before it begins."""
    seconds = run.get("seconds")
    if seconds is None:
        return ""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60}:{whole % 60:02d}"
