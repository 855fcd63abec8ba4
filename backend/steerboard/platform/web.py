"""The FastAPI application, and what every endpoint of the domains needs from the platform."""

from __future__ import annotations

import asyncio
import importlib
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.routing import APIRoute
from sqlalchemy.orm import Session, sessionmaker

from steerboard import __version__
from steerboard.observability import api as metrics
from steerboard.platform import dashboard, health, production, stream
from steerboard.platform.access import Access, AccessTo, Caller, Db, SignedIn, SystemAccessTo, audit
from steerboard.platform.artifacts import ArtifactStore
from steerboard.platform.database import make_engine, make_sessions
from steerboard.platform.errors import Problem, install_handlers, problems
from steerboard.platform.headers import SecurityHeaders
from steerboard.platform.idempotency import IdempotentRoute, Replay
from steerboard.platform.limits import BodyLimit
from steerboard.platform.paging import Page, paginate
from steerboard.platform.secrets import Secrets
from steerboard.platform.settings import Settings
from steerboard.platform.storage.probe import StoreProbe
from steerboard.platform.turns import RANKINGS_AT_ONCE, make_turns

__all__ = [
    "Access",
    "AccessTo",
    "Caller",
    "Db",
    "Page",
    "Problem",
    "SignedIn",
    "SystemAccessTo",
    "audit",
    "create_app",
    "paginate",
    "problems",
]

API = "/api/v1"
PROJECT = f"{API}/projects/{{project}}"
# Modules that have routers. Requests look for theirs in this order, and annotators ask most often.
_DOMAINS = (
    "evaluation.ranking.api",
    "accounts.api",
    "datasets.api",
    "registry.api",
    "runs.api",
    "recipes.api",
    "playground.api",
    "webhooks.api",
    "evaluation.api",
    "evaluation.prompt_sets_api",
    "evaluation.imports.api",
    "evaluation.judging.api",
    "evaluation.ranking.campaigns_api",
    "evaluation.report.api",
)


def create_app(
    settings: Settings,
    *,
    sessions: sessionmaker[Session] | None = None,
    background: Callable[[FastAPI], Callable[[], None]] | None = None,
) -> FastAPI:
    """The API. `background` starts what should run beside it and returns how to stop that.

    Raises `MissingSetting` and `UnsafeSetting` in production."""
    production.check(settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        _make_turns(app)  # of this event loop
        stop = background(app) if background else None
        yield
        if stop:
            stop()
        app.state.engine.dispose()

    app = FastAPI(
        title="Steerboard",
        version=__version__,
        description="Offline RLHF: datasets, reward models, alignment runs, reports.",
        openapi_url=f"{API}/openapi.json",
        lifespan=lifespan,
        responses=problems(401, 403, 422),
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.settings = settings
    app.state.stopping = threading.Event()
    _make_turns(app)
    app.state.feeds = {}
    app.state.sessions = sessions or make_sessions(make_engine(settings.database_url))
    app.state.engine = app.state.sessions.kw["bind"]
    app.state.store = ArtifactStore(settings.artifact_url)
    app.state.store_probe = StoreProbe(settings.artifact_url)
    app.state.secrets = Secrets(settings)
    install_handlers(app)
    app.exception_handler(Replay)(_replay)
    app.add_middleware(SecurityHeaders, api=API)
    app.add_middleware(BodyLimit, upload_bytes=settings.max_upload_mb << 20)
    _include_domains(app)
    metrics.install(app)
    dashboard.install(app)
    app.openapi = partial(_describe, app)  # type: ignore[method-assign]
    return app


def _make_turns(app: FastAPI) -> None:
    """Of requests at the database, of what readers of events ask it beside them, and of reports being computed."""
    app.state.turns = make_turns()
    app.state.ranking_turns = make_turns(RANKINGS_AT_ONCE)
    app.state.checks = asyncio.Semaphore(1)
    app.state.replays = asyncio.Semaphore(1)
    app.state.reports = asyncio.Semaphore(1)


def _replay(_request: Request, known: Exception) -> Response:
    assert isinstance(known, Replay)
    return known.response


def _include_domains(app: FastAPI) -> None:
    """`router` of each domain, and `project_router` where there is one, below the project; `system_router` below the
    API's root."""
    for domain in _DOMAINS:
        module = importlib.import_module(f"steerboard.{domain}")
        for name, prefix in (
            ("router", PROJECT),
            ("project_router", PROJECT),
            ("system_router", API),
            ("root_router", ""),
        ):
            router: APIRouter | None = getattr(module, name, None)
            if router is not None:
                _make_idempotent(router)
                app.include_router(router, prefix=prefix)
    app.include_router(stream.router, prefix=PROJECT)
    app.include_router(health.router, prefix=API)


def _make_idempotent(router: APIRouter) -> None:
    """Every POST takes an `Idempotency-Key`, without each domain having to remember it."""
    for route in router.routes:
        included: APIRouter | None = getattr(route, "original_router", None)
        if included is not None:
            _make_idempotent(included)
        if type(route) is APIRoute and route.methods and "POST" in route.methods:
            route.__class__ = IdempotentRoute


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
