"""The figures that processes of the API count themselves. Everything else is read from Postgres when it is asked for
(`insights.installation`), so that a restart loses nothing."""

from __future__ import annotations

import os

import psutil
from prometheus_client import CollectorRegistry, Gauge, disable_created_metrics
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from sqlalchemy import Engine, event

# Several processes of one `steerboard api` share what they count through files of this folder.
_SHARED = "PROMETHEUS_MULTIPROC_DIR"
REGISTRY = CollectorRegistry()
# When a series began is of no use here, and as many lines again.
disable_created_metrics()  # type: ignore[no-untyped-call]

_CONNECTIONS = Gauge(
    "steerboard_database_connections_in_use",
    "Connections of the API's pools that a request or a background task holds.",
    registry=REGISTRY,
    multiprocess_mode="livesum",
)


def observe_pool(engine: Engine) -> None:
    """Count the connections that are out of its pool."""

    def taken(*_: object) -> None:
        _CONNECTIONS.inc()

    def given_back(*_: object) -> None:
        _CONNECTIONS.dec()

    event.listen(engine, "checkout", taken)
    event.listen(engine, "checkin", given_back)


def counted() -> CollectorRegistry:
    """What to expose: this process's figures, or those of all processes that share the folder."""
    folder = os.environ.get(_SHARED)
    if not folder:
        return REGISTRY
    for name in os.listdir(folder):
        pid = name.rpartition("_")[2].removesuffix(".db")
        if name.startswith("gauge_live") and pid.isdigit() and not psutil.pid_exists(int(pid)):
            mark_process_dead(int(pid), folder)  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    MultiProcessCollector(registry, folder)  # type: ignore[no-untyped-call]
    return registry
