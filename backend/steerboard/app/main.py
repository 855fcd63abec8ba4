"""The FastAPI application: routers, middleware, and the state that requests find in it."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI, Request, Response
from sqlalchemy.orm import Session, sessionmaker
from starlette.types import ASGIApp

from steerboard import __version__
from steerboard.accounts.idempotency import Replay
from steerboard.app import api_reference as reference
from steerboard.app import dashboard, health, metrics
from steerboard.app.routers import include_routers
from steerboard.app.wiring import wire
from steerboard.datasets.imports.execution.processes import ImportProcesses
from steerboard.openai_api.errors import OpenAIAnswers
from steerboard.platform.concurrency import CONNECTIONS, make_pools
from steerboard.platform.database import make_engine, make_sessions
from steerboard.platform.http.body_limits import BodyLimit
from steerboard.platform.http.callers import Callers
from steerboard.platform.http.errors import install_handlers, problems
from steerboard.platform.http.hosts import AllowedHosts, Hosts
from steerboard.platform.http.security_headers import SecurityHeaders
from steerboard.platform.security import production
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore

API = "/api/v1"
# How long a thread that computes may keep the interpreter while others wait for it: a request needs it a dozen times.
SWITCH_SECONDS = 0.001


class _App(FastAPI):
    """Headers go around everything, also around the answer to an error that nothing expected."""

    def build_middleware_stack(self) -> ASGIApp:
        return SecurityHeaders(AllowedHosts(dashboard.Assets(super().build_middleware_stack())), api=API)


def create_app(
    settings: Settings,
    *,
    sessions: sessionmaker[Session] | None = None,
    background: Callable[[FastAPI], Callable[[], None]] | None = None,
) -> FastAPI:
    """The API. `background` starts background work and returns a function that stops it.

    Raises `MissingSetting` and `UnsafeSetting` in production."""
    production.check(settings)
    wire()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        _make_slots(app)  # of this event loop
        sys.setswitchinterval(SWITCH_SECONDS)
        stop = background(app) if background else None
        yield
        if stop:
            stop()
        app.state.engine.dispose()

    app = _App(
        title="Steerboard",
        version=__version__,
        description="Offline RLHF: datasets, reward models, alignment runs, reports.",
        openapi_url=f"{API}/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses=problems(401, 403, 422),
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.import_processes = ImportProcesses()
    attach(app, settings, sessions or make_sessions(make_engine(settings.database_url, CONNECTIONS)))
    install_handlers(app)
    app.exception_handler(Replay)(_replay)
    app.add_middleware(BodyLimit)
    app.add_middleware(OpenAIAnswers)
    include_routers(app, api=API)
    reference.install(app)
    metrics.install(app)
    dashboard.install(app)
    app.openapi = partial(_describe, app)  # type: ignore[method-assign]
    return app


def attach(app: FastAPI, settings: Settings, sessions: sessionmaker[Session]) -> None:
    """What requests find in the app's state. Its routes, which take long to make, are the same for every database."""
    app.state.settings = settings
    app.state.hosts = Hosts.of(settings)
    app.state.stopping = threading.Event()
    app.state.callers = Callers()
    _make_slots(app)
    app.state.feeds = {}
    app.state.sessions = sessions
    app.state.engine = sessions.kw["bind"]
    app.state.store = ArtifactStore(settings.artifact_url)
    app.state.probes = health.make_probes(settings, app.state.engine.url)
    app.state.secrets = Secrets(settings)
    metrics.watch(app)


def _make_slots(app: FastAPI) -> None:
    """Limits on requests at the database, and on reads by event streams."""
    app.state.pools = make_pools()
    app.state.checks = asyncio.Semaphore(1)
    app.state.replays = asyncio.Semaphore(1)


def _replay(_request: Request, known: Exception) -> Response:
    assert isinstance(known, Replay)
    return known.response


def _describe(app: FastAPI) -> dict[str, Any]:
    """OpenAPI, in which every failure is a problem document and not plain JSON, as FastAPI would write it."""
    if app.openapi_schema is None:
        schema = FastAPI.openapi(app)
        for operations in schema["paths"].values():
            for operation in operations.values():
                for status, response in operation["responses"].items():
                    content = response.get("content", {})
                    if status >= "400" and "application/json" in content:
                        reference = content.pop("application/json")
                        ours = str(reference["schema"].get("$ref", "")).endswith("/HTTPValidationError")
                        problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
                        content["application/problem+json"] = problem if ours else reference
    return schema if app.openapi_schema is None else app.openapi_schema
