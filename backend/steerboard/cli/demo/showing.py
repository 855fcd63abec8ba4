"""What both demos share: the platform on a free port, datasets that are imported once, the report, a dashboard that
opens and answers that can be ranked."""

from __future__ import annotations

import os
import signal
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import httpx
import typer
from rich.console import Console

from steerboard.cli.client import ApiError, Client, path_of
from steerboard.cli.evaluation import campaigns
from steerboard.cli.output.pipeline_result import finish
from steerboard.platform.settings import get_settings
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.report.flat import best_rows
from steerboard_contracts.report.pipeline import PipelineReport

if TYPE_CHECKING:
    from steerboard.cli.server.launch import Platform

# Rows are few; what takes its time is a machine that is busy.
_IMPORT_TIMEOUT = httpx.Timeout(600.0, connect=5.0)
# What people are asked to rank: few prompts, and as many answers as fit side by side.
_RANKED_PROMPTS = 20
_RANKED_ENTRANTS = 8

ExitOption = Annotated[bool, typer.Option("--exit", help="Exit after printing the report.")]
ReportOption = Annotated[Path | None, typer.Option(help="Also write the report to this file, as JSON.")]
PortOption = Annotated[
    int | None, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one. [default: 8700]")
]


@dataclass(frozen=True)
class Demo:
    """`start` imports what is needed and starts the pipeline; `instructions` are for those who rank its answers;
    `prompt` is one for its policy that takes scores."""

    start: Callable[[Client, Console], dict[str, Any]]
    instructions: str
    prompt: str


def show(demo: Demo, *, exit_: bool, report: Path | None, port: int | None) -> None:
    """Start everything, run the demo, print its report, and stay up unless `exit_`."""
    settings = get_settings()
    console = Console()
    # Until the report is there, a signal ends the command through its `with`, so that everything stops in order.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    wanted = settings.port if port is None else port
    with _launched(settings.home, settings.host, wanted, chosen=port is not None) as up:
        console.print(f"Steerboard is ready at {up.url}; data and logs are in {settings.home}", markup=False)
        client = Client(home=settings.home)
        pipeline = demo.start(client, console)
        finished_report = finish(client, console, pipeline, json=False, report_path=report, examples=True)
        evaluation, campaign = ask_for_rankings(client, finished_report, demo.instructions)
        console.print(
            f"\n{campaign['items']} prompts, each with {len(campaign['entrants'])} answers, are ready to rank."
        )
        if exit_:
            words = (
                f".venv/bin/steerboard up; then, for the address: .venv/bin/steerboard evaluations rank {evaluation}"
            )
            console.print(f"To rank them blind in the browser, start {words}", markup=False, soft_wrap=True)
            return
        link = f"{up.sign_in_url}?back=/p/default/pipelines/{pipeline['name']}"
        if open_browser(link):
            console.print("\nThe dashboard is open in your browser; for another one: steerboard sign-in")
        else:
            console.print(f"\nOpen the dashboard, signed in once:  {link}", soft_wrap=True, markup=False)
        ranking = campaigns.signed_in(client, campaigns.page_of(client, campaign))
        console.print(f"Rank the answers blind, signed in once:  {ranking}", soft_wrap=True, markup=False)
        console.print(f"API: {up.url}/docs", markup=False)
        words = f'Try: .venv/bin/steerboard generate {pipeline["name"]}.dt --prompt "{demo.prompt}" --score 5'
        console.print(words, markup=False, soft_wrap=True)
        console.print("Steerboard stays up; stop it with Ctrl-C.", markup=False)
        _stay(up)


def _stay(up: Platform) -> None:
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stopped.set())
    while not stopped.wait(0.2) and not up.ended.is_set():
        pass


def open_browser(url: str) -> bool:
    """Show a page in the person's browser. False where no one sits before one: over ssh, in CI, in a container."""
    seen = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return bool(seen and sys.stdout.isatty() and webbrowser.open(url))


def exists(client: Client, kind: str, name: str) -> bool:
    try:
        client.get(path_of(kind, name))
    except ApiError as error:
        if error.status == 404:
            return False
        raise
    return True


def import_rows(client: Client, console: Console, file: Path, kind: str, name: str, words: str) -> None:
    """Import a jsonl file as a dataset. `words`: what its rows are."""
    with file.open("rb") as content:
        imported = client.post(
            "datasets/import",
            files={"file": (file.name, content)},
            data={"kind": kind, "name": name},
            timeout=_IMPORT_TIMEOUT,
        )["dataset"]
    console.print(f"Imported {imported['rows']:,} {words} as {imported['name']}", markup=False)


def ask_for_rankings(client: Client, report: PipelineReport, instructions: str) -> tuple[str, dict[str, Any]]:
    """The name of the report's evaluation, and a campaign in which people rank the best of each method."""
    if report.evaluation is None:
        raise SteerboardError("the report does not belong to an evaluation, so there are no answers to rank")
    entrants = [row.name or row.entrant for row in best_rows(report)[:_RANKED_ENTRANTS]]
    name = report.evaluation.name
    made = campaigns.create(client, name, entrants=entrants, limit=_RANKED_PROMPTS, instructions=instructions)
    return name, made


@contextmanager
def _launched(home: Path, host: str, port: int, *, chosen: bool) -> Iterator[Platform]:
    """The platform on `port`, or on any free one when no one chose it and it is taken."""
    # Imported here, so that no other command waits for the whole backend.
    from steerboard.cli.server.launch import LaunchOptions, Platform

    with ExitStack() as stack:
        try:
            running = stack.enter_context(Platform(LaunchOptions(home=home, host=host, port=port)))
        except SteerboardError as error:
            if error.code != "port_in_use" or chosen:
                raise
            running = stack.enter_context(Platform(LaunchOptions(home=home, host=host, port=0)))
        yield running
