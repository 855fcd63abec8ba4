"""Errors as OpenAI's API answers them, with our code and hint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import Response
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from steerboard.openai_api.paths import is_openai_path
from steerboard.platform.http.errors import ERROR_FORM, NotFound
from steerboard_contracts.errors import BadInput, ErrorLocation, SteerboardError

_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    429: "rate_limit_error",
}
_SHOWN_PLACES = 20


class UnsupportedParameter(BadInput):
    """A field of OpenAI's API that would change the outcome, and that nothing here follows."""

    code = "unsupported_parameter"
    title = "The parameter is not supported"


def unsupported(param: str, why: str, hint: str | None = None) -> UnsupportedParameter:
    """`why` follows the parameter's name in the message."""
    place = ErrorLocation(location=param, message="is not supported")
    return UnsupportedParameter(f"`{param}` {why}", errors=[place], hint=hint)


def refuse_others(given: Mapping[str, Any], neutral: Mapping[str, tuple[Any, ...]], hint: str | None = None) -> None:
    """`given`: fields that nothing reads. Those of `neutral` may have one of its values, or null, with which they ask
    for what happens anyway. Raises `UnsupportedParameter`."""
    for name, value in given.items():
        if name not in neutral:
            raise unsupported(name, "is not a parameter that this server knows", hint)
        if value is not None and value not in neutral[name]:
            raise unsupported(name, "is not supported with this value; leave it out", hint)


class OpenAIAnswers:
    """Installed before the routes: failures of requests below OpenAI's paths are answered in its form, with or without
    a route for them, and no answer is cached."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_openai_path(scope["path"]):
            await self._app(scope, receive, send)
            return

        async def uncached(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Cache-Control"] = "no-store"
            await send(message)

        scope[ERROR_FORM] = error_response
        await self._app(scope, receive, uncached)


def error_response(error: SteerboardError) -> Response:
    """422 is 400 there. Its clients repeat conflicts unless a header forbids it."""
    status = 400 if error.status == 422 else error.status
    headers = {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status == 409 or status == 507:
        headers["x-should-retry"] = "false"
    if "retry_after_seconds" in error.extra:
        headers["Retry-After"] = str(error.extra["retry_after_seconds"])
    content = json.dumps(error_body(error), ensure_ascii=False).encode(errors="replace")
    return Response(content, status, headers=headers, media_type="application/json")


def error_body(error: SteerboardError) -> dict[str, Any]:
    status = 400 if error.status == 422 else error.status
    kind = "server_error" if status >= 500 else _TYPES.get(status, "invalid_request_error")
    places = [(place.location.removeprefix("body."), place.message) for place in error.errors[:_SHOWN_PLACES]]
    lines = [error.detail, *(f"{where}: {what}" for where, what in places if where not in error.detail)]
    return {
        "error": {
            "message": "\n".join(lines),
            "type": kind,
            "param": places[0][0] if places else None,
            "code": error.code,
            "hint": error.hint,
        }
    }


def unknown(what: str, id_: str) -> NotFound:
    """A file or job that is not in the project."""
    return NotFound(
        f"there is no {what} {id_!r} in this project", hint="The client's `project`, or the base URL, decides."
    )
