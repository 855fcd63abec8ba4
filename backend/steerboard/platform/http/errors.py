"""Errors of the API and the problem documents (RFC 9457) that they become."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from psycopg.errors import UniqueViolation
from pydantic import BaseModel
from sqlalchemy.exc import DataError, IntegrityError, OperationalError
from starlette.exceptions import HTTPException

from steerboard.platform.storage.disk import database_is_full, no_space_for_rows
from steerboard.platform.telemetry.secret_paths import without_code
from steerboard_contracts.complaints import locations
from steerboard_contracts.errors import ErrorLocation, SteerboardError

log = logging.getLogger(__name__)

# The most faulty fields of a request that are listed.
_PLACES = 100
# A key of the scope: how errors of its request are answered, see `answer_error`.
ERROR_FORM = "steerboard.error_form"


class NotFound(SteerboardError):
    code = "not_found"
    status = 404
    title = "Not found"


class Conflict(SteerboardError):
    code = "conflict"
    status = 409
    title = "The request conflicts with the current state"


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


class RequestTimeout(SteerboardError):
    code = "request_timeout"
    status = 408
    title = "The request arrived too slowly"


class TooManyAttempts(SteerboardError):
    """`extra["retry_after_seconds"]` is the time to wait."""

    code = "too_many_attempts"
    status = 429
    title = "Too many attempts"


class ServiceUnavailable(SteerboardError):
    code = "service_unavailable"
    status = 503
    title = "A service is not available"


class ClientGone(SteerboardError):
    """The caller has closed the connection, so no one reads this."""

    code = "client_gone"
    status = 499
    title = "The client closed the request"


class Problem(BaseModel):
    """A problem document. `code` is stable, `hint` suggests what to do next."""

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
    """A detail may repeat what someone sent, also text that is not valid Unicode (lone surrogates)."""

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


def problem_of(error: Exception) -> SteerboardError | None:
    """What a request that ends with this error is answered; None for one that nothing expected."""
    if isinstance(error, SteerboardError):
        return error
    # Services check names first; this is the loser of a race between two requests.
    if isinstance(error, IntegrityError) and isinstance(error.orig, UniqueViolation):
        return Conflict("Something with this name was created at the same moment.", code="name_taken")
    # Names in URLs and bodies reach the database before anyone has looked at their characters.
    if isinstance(error, DataError | UnicodeEncodeError):
        return InvalidRequest(
            "A value of the request cannot be stored: a number out of range, or text with a NUL character or "
            "a lone surrogate."
        )
    if isinstance(error, OperationalError):
        if database_is_full(error):
            return no_space_for_rows()
        return ServiceUnavailable(
            "The database does not answer.", code="database_unavailable", hint="Run `steerboard doctor`."
        )
    return None


def answer_error(request: Request, error: SteerboardError) -> Response:
    """The answer in the form that the caller reads: a problem document, unless something before the routes has put
    another one under `ERROR_FORM` in the scope."""
    form: Callable[[SteerboardError], Response] = request.scope.get(ERROR_FORM, problem_response)
    return form(error)


def install_handlers(app: FastAPI) -> None:
    """Every failure leaves as `answer_error` has it; a traceback goes to the log only."""

    @app.exception_handler(SteerboardError)
    def expected(request: Request, error: SteerboardError) -> Response:
        return answer_error(request, error)

    @app.exception_handler(RequestValidationError)
    def invalid(request: Request, error: RequestValidationError) -> Response:
        places = locations(error.errors()[:_PLACES])
        more = len(error.errors()) - len(places)
        detail = f"The request has fields that cannot be used{f', and {more} more than are listed' if more else ''}."
        return answer_error(request, InvalidRequest(detail, errors=places))

    @app.exception_handler(HTTPException)
    def http(request: Request, error: HTTPException) -> Response:
        known = {kind.status: kind for kind in (NotFound, Unauthenticated, Forbidden, TooLarge)}.get(error.status_code)
        if known:
            return answer_error(request, known(str(error.detail)))
        wrapped = SteerboardError(str(error.detail), code=f"http_{error.status_code}")
        wrapped.status, wrapped.title = error.status_code, str(error.detail)
        return answer_error(request, wrapped)

    @app.exception_handler(IntegrityError)
    @app.exception_handler(DataError)
    @app.exception_handler(UnicodeEncodeError)
    @app.exception_handler(OperationalError)
    def database(request: Request, error: Exception) -> Response:
        problem = problem_of(error)
        if problem is None:
            return unexpected(request, error)
        log.warning("%s %s: %s", request.method, without_code(request.url.path), getattr(error, "orig", error))
        return answer_error(request, problem)

    @app.exception_handler(Exception)
    def unexpected(request: Request, error: Exception) -> Response:
        log.error("%s %s failed", request.method, without_code(request.url.path), exc_info=error)
        detail = "The server hit an unexpected error; its log has the traceback."
        return answer_error(request, SteerboardError(detail, code="internal_error"))
