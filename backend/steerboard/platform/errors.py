"""Errors of the API and the problem documents (RFC 9457) that they become."""

from __future__ import annotations

import json
import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from psycopg.errors import UniqueViolation
from pydantic import BaseModel
from sqlalchemy.exc import DataError, IntegrityError, OperationalError
from starlette.exceptions import HTTPException

from steerboard_contracts.errors import ErrorLocation, SteerboardError

log = logging.getLogger(__name__)


class NotFound(SteerboardError):
    code = "not_found"
    status = 404
    title = "Not found"


class Conflict(SteerboardError):
    code = "conflict"
    status = 409
    title = "It conflicts with what is there"


class Unauthenticated(SteerboardError):
    code = "unauthenticated"
    status = 401
    title = "Sign in first"


class Forbidden(SteerboardError):
    code = "forbidden"
    status = 403
    title = "Not allowed"


class InvalidRequest(SteerboardError):
    code = "invalid_request"
    status = 422
    title = "The request cannot be understood"


class TooLarge(SteerboardError):
    code = "too_large"
    status = 413
    title = "The upload is too large"


class TooManyAttempts(SteerboardError):
    """`extra["retry_after_seconds"]` says how long to wait."""

    code = "too_many_attempts"
    status = 429
    title = "Too many attempts"


class ServiceUnavailable(SteerboardError):
    code = "service_unavailable"
    status = 503
    title = "A service is not available"


class Problem(BaseModel):
    """A problem document. `code` is stable, `hint` says what to do next."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    hint: str | None = None
    errors: list[ErrorLocation] = []


_TITLES = {error.status: error.title for error in SteerboardError.__subclasses__() if error.__module__ == __name__}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """`responses=` of an endpoint, so that generated clients have typed errors."""
    return {status: {"model": Problem, "description": _TITLES.get(status, "Problem")} for status in statuses}


class _ProblemResponse(JSONResponse):
    """A detail may repeat what somebody sent, also text that is no Unicode (lone surrogates)."""

    media_type = "application/problem+json"

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(errors="replace")


def problem_response(error: SteerboardError) -> JSONResponse:
    problem = Problem(
        type=f"urn:steerboard:problem:{error.code}",
        title=error.title,
        status=error.status,
        code=error.code,
        detail=error.detail,
        hint=error.hint,
        errors=error.errors,
    )
    body = {**problem.model_dump(), **jsonable_encoder(error.extra)}
    headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
    if "retry_after_seconds" in error.extra:
        headers["Retry-After"] = str(error.extra["retry_after_seconds"])
    return _ProblemResponse(body, status_code=error.status, headers=headers)


def install_handlers(app: FastAPI) -> None:
    """Every failure leaves as a problem document; a traceback goes to the log only."""

    @app.exception_handler(SteerboardError)
    def expected(_request: Request, error: SteerboardError) -> JSONResponse:
        return problem_response(error)

    @app.exception_handler(RequestValidationError)
    def invalid(_request: Request, error: RequestValidationError) -> JSONResponse:
        places = [
            ErrorLocation(location=".".join(str(part) for part in problem["loc"]), message=problem["msg"])
            for problem in error.errors()
        ]
        return problem_response(InvalidRequest("The request has fields that cannot be used.", errors=places))

    @app.exception_handler(HTTPException)
    def http(_request: Request, error: HTTPException) -> JSONResponse:
        known = {kind.status: kind for kind in (NotFound, Unauthenticated, Forbidden, TooLarge)}.get(error.status_code)
        if known:
            return problem_response(known(str(error.detail)))
        wrapped = SteerboardError(str(error.detail), code=f"http_{error.status_code}")
        wrapped.status, wrapped.title = error.status_code, str(error.detail)
        return problem_response(wrapped)

    @app.exception_handler(IntegrityError)
    def clash(request: Request, error: IntegrityError) -> JSONResponse:
        # Services check names first; this is the loser of a race between two requests.
        if not isinstance(error.orig, UniqueViolation):
            return unexpected(request, error)
        log.warning("%s %s: %s", request.method, request.url.path, error.orig)
        return problem_response(Conflict("Something with this name was created at the same moment.", code="name_taken"))

    @app.exception_handler(DataError)
    @app.exception_handler(UnicodeEncodeError)
    def unstorable(request: Request, error: Exception) -> JSONResponse:
        # Names in URLs and bodies reach the database before anybody has looked at their characters.
        log.warning("%s %s: %s", request.method, request.url.path, error)
        return problem_response(
            InvalidRequest(
                "A value of the request is none that can be stored: a number out of range, or text with a NUL "
                "character or a lone surrogate."
            )
        )

    @app.exception_handler(OperationalError)
    def database_away(request: Request, error: OperationalError) -> JSONResponse:
        log.error("%s %s: %s", request.method, request.url.path, error)
        return problem_response(
            ServiceUnavailable(
                "The database does not answer.", code="database_unavailable", hint="Run `steerboard doctor`."
            )
        )

    @app.exception_handler(Exception)
    def unexpected(request: Request, error: Exception) -> JSONResponse:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return problem_response(
            SteerboardError("The server met an unexpected error; its log has the traceback.", code="internal_error")
        )
