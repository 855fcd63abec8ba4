"""`steerboard demo`: from nothing to an aligned model and its report, on synthetic data; `make demo` calls it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import httpx
import typer
from rich.console import Console

from steerboard.cli.client import ApiError, Client
from steerboard.cli.evaluation import campaigns
from steerboard.cli.output.pipeline_result import finish
from steerboard.platform.settings import get_settings
from steerboard.platform.storage import scratch
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.report.pipeline import Report
from steerboard_contracts.report.summary import best_rows

if TYPE_CHECKING:
    from steerboard.cli.server.launch import Platform

commands = typer.Typer()

# Kinds of the demo's datasets, and the recipe's inputs that they are for.
KINDS = {"instructions": "instructions", "preferences": "preferences", "prompts": "prompts", "unpaired": "thumbs"}
# Rows are few; what takes its time is a machine that is busy.
_IMPORT_TIMEOUT = httpx.Timeout(600.0, connect=5.0)
# What people are asked to rank: few prompts, and as many answers as fit side by side.
_RANKED_PROMPTS = 20
_RANKED_ENTRANTS = 8
_INSTRUCTIONS = "Put the most helpful answer first. Answers of equal worth share a rank. All texts are synthetic."


@commands.command()
def demo(
    exit_: Annotated[bool, typer.Option("--exit", help="Stop when the report is printed.")] = False,
    report: Annotated[Path | None, typer.Option(help="Also write the report to this file, as JSON.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="0: any free one. [default: 8700]")] = None,
) -> None:
    """Start everything, run the demo pipeline on synthetic data, print its report, open the dashboard there, stay up.

    Its answers can then be ranked blind in the browser: the address is printed, too.

    Exits with 0 only if every stage succeeded.
    """
    settings = get_settings()
    console = Console()
    asked = threading.Event()
    # Until the report is there, a signal ends the command through its `with`, so that everything stops in order.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    wanted = settings.port if port is None else port
    with _launched(settings.home, settings.host, wanted, chosen=port is not None) as up:
        console.print(f"Steerboard is ready at {up.url}; data and logs are in {settings.home}", markup=False)
        client = Client(home=settings.home)
        datasets = _import_datasets(client, console)
        body = {"recipe": "demo", "set": [f"{KINDS[kind]}={name}" for kind, name in datasets.items()]}
        pipeline = client.post("pipelines", body)
        console.print(f"Started {pipeline['name']} with {len(pipeline['runs'])} stages on synthetic data.")
        found = finish(client, console, pipeline, json=False, report_path=report, examples=True)
        evaluation, campaign = ask_for_rankings(client, found)
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
        words = (
            f'Try: .venv/bin/steerboard generate {pipeline["name"]}.dt --prompt "How do I manage my time?" --score 5'
        )
        console.print(words, markup=False, soft_wrap=True)
        console.print("Steerboard stays up; stop it with Ctrl-C.", markup=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: asked.set())
        while not asked.wait(0.2) and not up.ended.is_set():
            pass


def open_browser(url: str) -> bool:
    """Show a page in the person's browser. False where no one sits before one: over ssh, in CI, in a container."""
    seen = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return bool(seen and sys.stdout.isatty() and webbrowser.open(url))


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


def _import_datasets(client: Client, console: Console) -> dict[str, str]:
    """Write and import the demo data; what an earlier demo imported is taken as it is. Returns kind -> name."""
    names = {kind: f"demo-{kind}" for kind in KINDS}
    missing = [kind for kind in KINDS if not _exists(client, names[kind])]
    if missing:
        with scratch.folder("demo") as folder:
            # A process of its own: the backend never imports the workers' package.
            command = [sys.executable, "-m", "steerboard_workers.synthetic", str(folder)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            for kind in missing:
                with (folder / f"{kind}.jsonl").open("rb") as file:
                    found = client.post(
                        "datasets/import",
                        files={"file": (f"synthetic-{kind}.jsonl", file)},
                        data={"kind": kind, "name": names[kind]},
                        timeout=_IMPORT_TIMEOUT,
                    )["dataset"]
                console.print(f"Imported {found['rows']:,} synthetic {kind} as {found['name']}", markup=False)
    return names


def ask_for_rankings(client: Client, report: Report) -> tuple[str, dict[str, Any]]:
    """The name of the report's evaluation, and a campaign in which people rank the best of each method."""
    if report.evaluation is None:
        raise SteerboardError("the report does not belong to an evaluation, so there are no answers to rank")
    entrants = [row.name or row.entrant for row in best_rows(report)[:_RANKED_ENTRANTS]]
    name = report.evaluation.name
    made = campaigns.create(client, name, entrants=entrants, limit=_RANKED_PROMPTS, instructions=_INSTRUCTIONS)
    return name, made


def _exists(client: Client, name: str) -> bool:
    try:
        client.get(f"datasets/{name}")
    except ApiError as error:
        if error.status == 404:
            return False
        raise
    return True
