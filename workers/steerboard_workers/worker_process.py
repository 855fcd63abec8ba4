"""What every process of a worker begins with: the servers, its devices and name, engines, logs and traces."""

from __future__ import annotations

import argparse
import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from steerboard.platform.database import make_lease_engine
from steerboard.platform.processes import startup
from steerboard.platform.processes.embedded import EmbeddedServers
from steerboard.platform.settings import Settings, get_settings
from steerboard.platform.storage import scratch
from steerboard.platform.storage.home import open_home
from steerboard.platform.telemetry import logs, traces

log = logging.getLogger("steerboard.worker")

# Shares of a lease. Of a renewal: there is time for two more on another connection before the stage is ended. Of other
# statements: until then the lease is kept all the same.
_RENEWAL_PATIENCE = 0.25
_PATIENCE = 4.0

# Runs at the same time that need no device: an endpoint that does not answer leaves room for others.
LANES = 4

NO_SERVERS = (
    "no `steerboard up` runs on this home (STEERBOARD_HOME); to work for one on another machine, "
    "set STEERBOARD_DATABASE_URL, STEERBOARD_REDIS_URL and STEERBOARD_ARTIFACT_URL"
)


def survive(action: Callable[[], None]) -> None:
    """No outage of the database or the broker ends a worker."""
    try:
        action()
    except SQLAlchemyError as error:
        log.warning("the database does not answer: %s", error)
    except Exception:
        log.exception("the worker continues after an unexpected error")


def worker_engine(settings: Settings) -> Engine:
    lease = settings.lease_seconds
    return make_lease_engine(settings.database_url, lease, pool_size=4 + LANES, patience=_PATIENCE * lease)


def renewal_engine(settings: Settings) -> Engine:
    """An engine for leases and signs of life alone, which are short and have to be in time."""
    lease = settings.lease_seconds
    return make_lease_engine(settings.database_url, lease, pool_size=2, patience=_RENEWAL_PATIENCE * lease)


def parse_devices(text: str) -> list[str]:
    """`0-3,6` as the ids 0, 1, 2, 3, 6; an empty text as none."""
    devices: list[str] = []
    for part in filter(None, text.split(",")):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not (first.isdigit() and last.isdigit() and int(first) <= int(last)):
            raise argparse.ArgumentTypeError(f"{part!r} is neither a number nor a range such as 0-7")
        devices.extend(str(number) for number in range(int(first), int(last) + 1))
    if len(set(devices)) < len(devices):
        raise argparse.ArgumentTypeError(f"{text!r} names a device twice")
    return devices


def find_servers() -> Settings | None:
    """The settings with the servers they name, or else those of a `steerboard up` that runs on the same home."""
    settings = get_settings()
    if settings.environment == "production":
        startup.require(settings)
        return settings
    open_home(settings.home)
    embedded = EmbeddedServers(settings.home)
    running = Path(embedded.redis_url.removeprefix("unix://")).is_socket()
    if not settings.database_url and running:
        os.environ["STEERBOARD_DATABASE_URL"] = embedded.database_url
    if not settings.redis_url and running:
        os.environ["STEERBOARD_REDIS_URL"] = embedded.redis_url
    get_settings.cache_clear()
    settings = get_settings()
    return settings if settings.database_url and settings.redis_url else None


def shown_name(name: str | None) -> str:
    """The name of a worker that was given none: host and process id."""
    return name or f"{socket.gethostname()}-{os.getpid()}"


def begin(settings: Settings, name: str | None) -> None:
    """Logs and traces of a worker process; then wait for what it works with. Raises like
    `platform.processes.startup`."""
    logs.configure(settings, worker=shown_name(name))
    traces.configure("steerboard-worker")
    scratch.sweep()
    startup.wait_for_database(settings)
    startup.wait_for_redis(settings)
