"""`/metrics` for Prometheus.

In production it needs `Authorization: Bearer STEERBOARD_METRICS_TOKEN`, and without that setting it does not exist: it
shares the public address, and reveals the load and the workers.
"""

from __future__ import annotations

import hmac

from fastapi import FastAPI, Request, Response
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from steerboard.accounts.http.routes import Router
from steerboard.insights.installation import Figures
from steerboard.platform.http.errors import NotFound, Unauthenticated
from steerboard.platform.settings import Settings
from steerboard.platform.telemetry import counters
from steerboard.platform.telemetry.requests import Observed

router = Router(tags=["system"])


def install(app: FastAPI) -> None:
    """Measure requests of `app`, and serve the figures."""
    app.add_middleware(Observed)
    app.include_router(router)


def watch(app: FastAPI) -> None:
    """The installation and the connections that `app` has."""
    settings: Settings = app.state.settings
    figures = CollectorRegistry()
    figures.register(Figures(app.state.sessions, settings.lease_seconds))
    app.state.figures = figures
    counters.observe_pool(app.state.engine)


@router.get("/metrics", include_in_schema=False)
def get_metrics(request: Request) -> Response:
    """The text format. Raises `NotFound` where no one may ask, `Unauthenticated`."""
    settings: Settings = request.app.state.settings
    token = settings.metrics_token.get_secret_value()
    if not token and settings.environment == "production":
        raise NotFound("metrics are not enabled on this server", hint="Set STEERBOARD_METRICS_TOKEN to enable them.")
    given = request.headers.get("Authorization", "").removeprefix("Bearer ").encode()
    if token and not hmac.compare_digest(given, token.encode()):
        raise Unauthenticated(
            "The metrics need their own bearer token.", hint="Use the value of STEERBOARD_METRICS_TOKEN."
        )
    parts = [generate_latest(registry) for registry in (counters.counted(), request.app.state.figures)]
    return Response(b"".join(parts), media_type=CONTENT_TYPE_LATEST)
