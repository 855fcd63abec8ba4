"""The API alone, as a container runs it: servers, workers and migrations are processes of their own."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors.multiprocess import Multiprocess

from steerboard.app import background
from steerboard.app.connections import server_config
from steerboard.app.main import create_app
from steerboard.cli.server.listening import bind
from steerboard.platform.concurrency import CONNECTIONS
from steerboard.platform.database import make_engine, make_sessions
from steerboard.platform.processes import startup
from steerboard.platform.settings import get_settings
from steerboard.platform.storage import scratch
from steerboard.platform.telemetry import logs, traces

log = logging.getLogger("steerboard.api")

# Requests that are being answered; live streams end immediately.
STOP_SECONDS = 20


def serve(host: str, port: int, processes: int, say: Callable[[str], None]) -> None:
    """Serves until SIGTERM or SIGINT. Raises what `platform.processes.startup` does, and `ServerFailed`
    (`port_in_use`)."""
    settings = get_settings()
    startup.require(settings)
    logs.configure(settings)
    listener = bind(host, port)
    scratch.sweep()
    startup.wait_for_database(settings)
    startup.wait_for_redis(settings)
    config = server_config(
        "steerboard.cli.server.api_server:application",
        factory=True,
        workers=processes,
        log_config=None,
        timeout_graceful_shutdown=STOP_SECONDS,
        forwarded_allow_ips=settings.trusted_proxies,
    )
    shown = f"[{host}]" if ":" in host else host
    say(f"The API listens on http://{shown}:{listener.getsockname()[1]}")
    if processes == 1:
        # uvicorn raises the signal again once it has stopped in order. It is not a failure, nor is an early one.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: sys.exit(0))
        uvicorn.Server(config).run([listener])
    else:
        _serve_from_several(config, listener)


def _serve_from_several(config: uvicorn.Config, listener: socket.socket) -> None:
    with scratch.folder("metrics") as folder:
        # Whichever process is asked for the metrics answers for all.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder)
        Multiprocess(config, [listener]).run()


def application() -> FastAPI:
    """Made in each process of the API."""
    settings = get_settings()
    logs.configure(settings)
    traces.configure("steerboard-api")
    sessions = make_sessions(make_engine(settings.database_url, CONNECTIONS))

    def begin(app: FastAPI) -> Callable[[], None]:
        _end_streams_at_signals(app)
        stop = background.start(app, sessions, settings)
        log.info("the API is ready")
        return stop

    return create_app(settings, sessions=sessions, background=begin)


def _end_streams_at_signals(app: FastAPI) -> None:
    """uvicorn waits for answers under way, and a live stream would be one for ten minutes."""

    def chain(number: int, then: Any) -> None:
        def handle(got: int, frame: FrameType | None) -> None:
            app.state.stopping.set()
            then(got, frame)

        signal.signal(number, handle)

    for number in (signal.SIGTERM, signal.SIGINT):
        if callable(then := signal.getsignal(number)):
            chain(number, then)
