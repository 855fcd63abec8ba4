"""Errors as an agent gets them: a code to act on, what was wrong, where, and what to do."""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp_types import CallToolResult, TextContent
from pydantic import ValidationError

import steerboard_client as sb
from steerboard.mcp.answers import MOST_CHARACTERS, packed, shortened
from steerboard_contracts.complaints import locations
from steerboard_contracts.errors import SteerboardError

_MOST_PLACES = 20
_DETAIL_CHARACTERS = 2000


class Refused(sb.BadInput):
    """A tool refuses before it asks the API. `more`: what else the agent needs to decide, such as a check."""

    def __init__(self, detail: str, *, code: str, hint: str, more: dict[str, Any] | None = None) -> None:
        super().__init__(detail, code=code, hint=hint)
        self.more = more or {}


def failed(error: Exception) -> CallToolResult | None:
    """The answer to a call that failed in an expected way; None for any other failure."""
    cause = error.__cause__ if isinstance(error, ToolError) else error
    if isinstance(cause, ValidationError):
        places = [place.model_dump() for place in locations(cause.errors())]
        return _answer("bad_arguments", "The arguments do not fit the tool.", "Fix the named ones.", errors=places)
    if isinstance(cause, Refused):
        return _answer(cause.code, cause.detail, cause.hint, **cause.more)
    if isinstance(cause, sb.ApiError):
        detail = str(cause.problem.get("detail") or cause.detail)
        return _answer(cause.code, detail, cause.hint, status=cause.status, errors=cause.errors)
    if isinstance(cause, sb.SteerboardError | SteerboardError):
        return _answer(cause.code, cause.detail, cause.hint)
    return None if isinstance(error, UnexpectedToolError) else _answer(code="bad_call", detail=str(error), hint=None)


def crashed() -> CallToolResult:
    return _answer("internal_error", "The tool failed.", "The log of `steerboard mcp` has the reason.")


def _answer(code: str, detail: str, hint: str | None, **more: Any) -> CallToolResult:
    body: dict[str, Any] = {"code": code, "detail": detail[:_DETAIL_CHARACTERS], "hint": hint}
    body |= {name: value for name, value in more.items() if value not in (None, [])}
    if isinstance(body.get("errors"), list):
        body["errors"] = body["errors"][:_MOST_PLACES]
    body = {"error": shortened(body, MOST_CHARACTERS)}
    return CallToolResult(content=[TextContent(text=packed(body))], structured_content=body, is_error=True)
