"""`steerboard up`, `worker`, `doctor`, `sign-in`, `version`."""

from __future__ import annotations

import os
import platform as host_platform
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from steerboard import __version__
from steerboard.cli.client import Client
from steerboard.cli.output.console import JsonOption, tell
from steerboard.platform.settings import get_settings

if TYPE_CHECKING:
    from steerboard.cli.server.launch import Platform

commands = typer.Typer()

Home = Annotated[Path | None, typer.Option(help="Folder for all data. [default: .steerboard, or STEERBOARD_HOME]")]


@commands.command()
def up(
    host: Annotated[str | None, typer.Option(help="Address to listen on. [default: 127.0.0.1]")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one. [default: 8700]")
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="Worker processes on this machine.")] = 1,
    pool: Annotated[str, typer.Option(help="Pool of these workers.")] = "default",
    no_worker: Annotated[bool, typer.Option("--no-worker", help="Start no workers on this machine.")] = False,
    home: Home = None,
    ready_file: Annotated[
        Path | None, typer.Option(help="File to write with url and sign_in, as JSON, once all is ready.")
    ] = None,
) -> None:
    """Start everything: API, worker, and PostgreSQL and Valkey unless their URLs are set. Ctrl-C stops it."""
    # Imported here, as below, so that no other command waits a second for the whole backend.
    from steerboard.cli.server.launch import LaunchOptions, Platform
    from steerboard.platform.security import production

    settings = get_settings()
    production.check(settings)
    options = LaunchOptions(
        home=home.expanduser().absolute() if home else settings.home,
        host=host or settings.host,
        port=settings.port if port is None else port,
        workers=0 if no_worker else workers,
        pool=pool,
    )
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: stopped.set())
    with Platform(options) as running:
        typer.echo(f"Steerboard is ready at {running.url}")
        typer.echo(f"Sign in once:  {running.sign_in_url}")
        typer.echo(f"Data and logs: {options.home}")
        if options.host not in ("127.0.0.1", "::1", "localhost"):
            typer.echo("Other machines can reach this server without TLS: put a TLS proxy in front of it.", err=True)
        if ready_file is not None:
            _write_ready(ready_file, running)
        sys.stdout.flush()
        while not stopped.wait(0.2) and not running.ended.is_set():
            pass
        typer.echo("Stopping ...")
    if not stopped.is_set():
        raise typer.Exit(1)


def _write_ready(path: Path, running: Platform) -> None:
    temporary = path.with_name(path.name + ".partial")
    temporary.write_bytes(
        orjson.dumps(
            {"url": running.url, "sign_in": running.sign_in_url, "pid": os.getpid()}, option=orjson.OPT_INDENT_2
        )
    )
    temporary.replace(path)


@commands.command()
def worker(
    pool: Annotated[str, typer.Option(help="Pool to take runs from; `interactive` serves the playground.")] = "default",
    devices: Annotated[str, typer.Option(help="Ids of the GPUs it owns, such as 0-7 or 0,2.")] = "",
    name: Annotated[str | None, typer.Option(help="Display name.")] = None,
    nodes: Annotated[int, typer.Option(min=1, help="Machines that train together as one worker.")] = 1,
    node: Annotated[int, typer.Option(min=0, help="Index of this machine; 0 takes the runs.")] = 0,
    rendezvous: Annotated[str, typer.Option(help="HOST:PORT of node 0, the same for all nodes.")] = "",
) -> None:
    """Start another worker, on this or another machine. Reads STEERBOARD_DATABASE_URL, _REDIS_URL and _ARTIFACT_URL."""
    from steerboard.playground.claims import POOL as INTERACTIVE

    module = "steerboard_workers.interactive.worker" if pool == INTERACTIVE else "steerboard_workers.worker"
    command = [sys.executable, "-m", module, "--pool", pool, "--devices", devices]
    command += ["--name", name] if name else []
    if nodes > 1 or node or rendezvous:
        command += ["--nodes", str(nodes), "--node", str(node), "--rendezvous", rendezvous]
    os.execv(sys.executable, command)


@commands.command()
def doctor(
    home: Home = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")] = False,
) -> None:
    """Check this installation and suggest fixes. Exits with 1 if a check fails."""
    from steerboard.cli.server import doctor as checks

    results = checks.examine(home.expanduser().absolute() if home else get_settings().home)
    if json:
        document = {"ok": all(check.ok for check in results), "checks": [check.as_dict() for check in results]}
        typer.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
    else:
        for check in results:
            mark = typer.style("ok  ", fg="green") if check.ok else typer.style("FAIL", fg="red")
            typer.echo(f"{mark}  {check.name}: {check.found}")
            if not check.ok:
                typer.echo(f"      fix: {check.mend}")
    if not all(check.ok for check in results):
        raise typer.Exit(1)


@commands.command("sign-in")
def sign_in(json: JsonOption = False) -> None:
    """Print a new one-time sign-in link."""
    client = Client()
    url = client.url + client.post("/api/v1/sign-in-links")["path"]
    tell(url, {"url": url}, json=json)


@commands.command()
def version(json: JsonOption = False) -> None:
    """Print the versions of Steerboard and of Python."""
    python = host_platform.python_version()
    tell(f"steerboard {__version__} (Python {python})", {"steerboard": __version__, "python": python}, json=json)
