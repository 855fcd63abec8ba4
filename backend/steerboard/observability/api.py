"""`/metrics` for Prometheus.

In production it needs `Authorization: Bearer STEERBOARD_METRICS_TOKEN`, and without that setting it does not exist: it
stands at the address that people reach, and tells how much work there is and who computes it.
"""

from __future__ import annotations

import hmac

from fastapi import APIRouter, FastAPI, Request, Response
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from steerboard.observability import registry
from steerboard.observability.figures import Figures
from steerboard.observability.requests import Observed
from steerboard.platform.errors import NotFound, Unauthenticated
from steerboard.platform.settings import Settings

router = APIRouter(tags=["system"])


def install(app: FastAPI) -> None:
    """Measure requests and connections of `app`, and serve the figures."""
    settings: Settings = app.state.settings
    figures = CollectorRegistry()
    figures.register(Figures(app.state.sessions, settings.lease_seconds))
    app.state.figures = figures
    registry.observe_pool(app.state.engine)
    app.add_middleware(Observed)
    app.include_router(router)


@router.get("/metrics", include_in_schema=False)
def get_metrics(request: Request) -> Response:
    """The text format. Raises `NotFound` where nobody may ask, `Unauthenticated`."""
    settings: Settings = request.app.state.settings
    token = settings.metrics_token.get_secret_value()
    if not token and settings.environment == "production":
        raise NotFound("there are no metrics here", hint="Set STEERBOARD_METRICS_TOKEN to have them.")
    given = request.headers.get("Authorization", "").removeprefix("Bearer ").encode()
    if token and not hmac.compare_digest(given, token.encode()):
        raise Unauthenticated("The metrics need their own bearer token.", hint="It is STEERBOARD_METRICS_TOKEN.")
    parts = [generate_latest(one) for one in (registry.counted(), request.app.state.figures)]
    return Response(b"".join(parts), media_type=CONTENT_TYPE_LATEST)
