"""What both connections do alike: paths, retries, and answers that are errors."""

from __future__ import annotations

import random
from typing import Any
from urllib.parse import quote

import httpx

from steerboard_client.errors import ApiError, ServerUnreachable

TRIES = 6
# A server that restarts or is busy. If it did its work, the idempotency key gets the first answer.
PASSING = frozenset({429, 502, 503, 504})
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 15.0


def path_of(*parts: object) -> str:
    """`evaluations/NAME/report`: a name stays one part, whatever is in it."""
    return "/".join(quote(str(part), safe="") for part in parts)


def pause(attempt: int, response: httpx.Response | None = None) -> float:
    """Seconds before the next try, as the server asks or growing, with jitter."""
    seconds = response.headers.get("Retry-After", "") if response is not None else ""
    if seconds.isdigit():
        return min(float(seconds), 60.0)
    return min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0**attempt) * (0.5 + random.random() / 2)


def check(response: httpx.Response) -> httpx.Response:
    """Raises `ApiError`, and `ServerUnreachable` for what no Steerboard server answers. The body has been read."""
    if response.is_redirect:
        where = response.headers.get("location", "nowhere")
        raise ServerUnreachable(f"{response.url} redirects to {where}.", hint="Check the URL, and any proxy.")
    if not response.is_error:
        return response
    try:
        problem: Any = response.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict):
        problem = {"detail": f"{response.url} answered {response.status_code}", "hint": "Check the URL, and any proxy."}
    raise ApiError(problem, response.status_code)


def unreachable(url: str, error: Exception) -> ServerUnreachable:
    return ServerUnreachable(
        f"the server at {url} does not answer: {error or type(error).__name__}.",
        hint="Is `steerboard up` running? `steerboard doctor` shows what is wrong.",
    )
