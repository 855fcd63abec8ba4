"""Every request: its id in logs and answer, how long it took, and a span. Plain ASGI, so that streams pass through.

OpenTelemetry's instrumentation of FastAPI, which has betas only, makes the span and leaves the id, the line and the
histogram to us; and spans go nowhere without the extra `telemetry`.
"""

from __future__ import annotations

import logging
import re
import secrets
import time

from prometheus_client import Histogram
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from steerboard.platform.telemetry import logs, traces
from steerboard.platform.telemetry.counters import REGISTRY
from steerboard.platform.telemetry.secret_paths import without_code

log = logging.getLogger("steerboard.requests")

REQUEST_ID = "X-Request-ID"
# What a proxy before us may have given the request; anything else could forge lines of a log.
_GIVEN_ID = re.compile(r"[\w.:-]{1,128}")
# Probes and scrapes come every few seconds and say nothing about people.
_SILENT = ("/api/v1/system/live", "/api/v1/system/health", "/metrics")
_SECONDS = Histogram(
    "steerboard_http_request_seconds",
    "From the arrival of a request to the start of its answer, in seconds.",
    ("method", "route", "status"),
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
    registry=REGISTRY,
)
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))


class Observed:
    """Live streams count until they begin."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get(REQUEST_ID, "")
        request_id = given if _GIVEN_ID.fullmatch(given) else secrets.token_hex(8)
        # Bound for the rest of this task: what fails is logged further out than here.
        logs.bind(request_id=request_id)
        began = time.perf_counter()
        status = 0
        method = scope["method"] if scope["method"] in _METHODS else "other"

        def note(answered: int) -> None:
            nonlocal status
            status = answered
            _SECONDS.labels(method, route_of(scope), str(status)).observe(time.perf_counter() - began)

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).setdefault(REQUEST_ID, request_id)
                note(message["status"])
            await send(message)

        path = without_code(scope["path"])
        attributes = {"http.request.method": method, "url.path": path, "steerboard.request_id": request_id}
        with traces.span(method, attributes, headers=headers) as span:
            try:
                await self._app(scope, receive, noted)
            except Exception:
                if not status:
                    note(500)
                raise
            finally:
                route = route_of(scope)
                span.update_name(f"{method} {route}")
                span.set_attribute("http.route", route)
                span.set_attribute("http.response.status_code", status)
                if path not in _SILENT:
                    fields = logs.fields(status=status, seconds=round(time.perf_counter() - began, 4))
                    log.info("%s %s", method, path, extra=fields)


def route_of(scope: Scope) -> str:
    """The template that matched, such as `/api/v1/projects/{project}/runs`; never an address as someone typed it."""
    # FastAPI's own route knows its path only up to the router that it was written in.
    context = scope.get("fastapi", {}).get("effective_route_context")
    template = getattr(context or scope.get("route"), "path", None)
    if isinstance(template, str):
        return template
    path: str = scope["path"]
    return "unmatched" if path == "/api" or path.startswith("/api/") else "dashboard"
