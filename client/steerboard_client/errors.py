"""Errors of the client: each has a code to act on, and a hint what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class SteerboardError(Exception):
    """`code` is stable; `hint` is what to do about it, where something is known."""

    code = "error"

    def __init__(self, detail: str, *, code: str | None = None, hint: str | None = None) -> None:
        super().__init__(detail if hint is None else f"{detail} {hint}")
        self.detail = detail
        self.hint = hint
        if code is not None:
            self.code = code

    def __str__(self) -> str:
        return f"{super().__str__()} [{self.code}]"


class ServerUnreachable(SteerboardError):
    """No Steerboard server answers, or none is known."""

    code = "server_unreachable"


class BadInput(SteerboardError):
    """What the caller gave cannot be used; nothing was sent."""

    code = "bad_input"


class ApiError(SteerboardError):
    """A problem document of the server. `errors`: places in the request, each with `location` and `message`."""

    def __init__(self, problem: Mapping[str, Any], status: int) -> None:
        detail = str(problem.get("detail") or f"the server answered {status}")
        places = [place for place in problem.get("errors") or [] if isinstance(place, dict)]
        text = "; ".join([detail.rstrip("."), *(f"{row.get('location')}: {row.get('message')}" for row in places[:5])])
        code = str(problem.get("code") or f"http_{status}")
        super().__init__(text, code=code, hint=problem.get("hint"))
        self.status = status
        self.errors = places
        self.problem = dict(problem)


class RunFailed(SteerboardError):
    """A run, a pipeline or an evaluation ended without success."""

    code = "run_failed"


class WaitTimeout(SteerboardError):
    """What was waited for continues; only the waiting has ended."""

    code = "wait_timeout"
