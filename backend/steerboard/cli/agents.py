"""`steerboard mcp`: the platform for agents, over stdio or HTTP."""

from __future__ import annotations

import os
import signal
import sys
from typing import Annotated

import typer

from steerboard.cli.client import address_of, url_of
from steerboard.platform.settings import get_settings
from steerboard_contracts.errors import BadInput

commands = typer.Typer()

_STOP_SECONDS = 5


@commands.command()
def mcp(
    http: Annotated[bool, typer.Option("--http", help="Serve streamable HTTP instead of standard input.")] = False,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 8710,
    allowed_host: Annotated[
        list[str], typer.Option(help="Name under which clients reach this server; may be repeated.")
    ] = [],  # noqa: B006
    allowed_origin: Annotated[
        list[str], typer.Option(help="Origin whose pages may call this server, as https://HOST; may be repeated.")
    ] = [],  # noqa: B006
    project: Annotated[str | None, typer.Option(help="Project. [default: STEERBOARD_PROJECT, or default]")] = None,
) -> None:
    """Serve the platform's tools to agents by the Model Context Protocol.

    Over standard input, for one agent, with the sign-in of the command line. With --http, every caller sends a token
    of their own.
    """
    _require_packages()
    home = get_settings().home
    project = project or os.environ.get("STEERBOARD_PROJECT")
    if http:
        _serve_http(url_of(home), project, host, port, allowed_host, allowed_origin)
        return
    from steerboard.mcp.boards import DEFAULT_PROJECT, OwnBoards
    from steerboard.mcp.server import make_server

    make_server(OwnBoards(lambda: address_of(home), project or DEFAULT_PROJECT)).run("stdio")


def _serve_http(
    url: str, project: str | None, host: str, port: int, allowed_hosts: list[str], allowed_origins: list[str]
) -> None:
    """Serves until SIGTERM or SIGINT."""
    import uvicorn

    from steerboard.cli.server.listening import bind
    from steerboard.mcp.http import PATH, http_app, refuse_open_server

    refuse_open_server(host, allowed_hosts)
    # Until uvicorn has handlers of its own, and when it raises the signal again at its end.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    listener = bind(host, port)
    listener.listen()  # who reads the address below may connect
    port = listener.getsockname()[1]
    app = http_app(url, project, host, port, allowed_hosts, allowed_origins)
    shown = f"[{host}]" if ":" in host else host
    typer.echo(f"Agents connect to http://{shown}:{port}{PATH}, each with a token of {url}.")
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=_STOP_SECONDS)
    uvicorn.Server(config).run([listener])


def _require_packages() -> None:
    """Raises `BadInput` (`missing_package`)."""
    try:
        import mcp  # noqa: F401

        import steerboard_client  # noqa: F401
    except ImportError as error:
        raise BadInput(
            f"{error.name} is not installed",
            code="missing_package",
            hint="Install it with `make setup-mcp`, or `pip install './client' '.[mcp]'` in a clone.",
        ) from None
