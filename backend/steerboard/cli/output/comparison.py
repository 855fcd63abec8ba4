"""A comparison of the playground, followed to its end."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import Any

import typer

from steerboard.cli.client import ApiError, Client
from steerboard.cli.output.console import EXIT_INTERRUPTED, note

_POLL_SECONDS = 0.3


def finished(client: Client, comparison: dict[str, Any]) -> dict[str, Any]:
    """The comparison when all of its answers have ended. What they wait for is printed on standard error. A person who
    interrupts ends them."""
    path = f"playground/comparisons/{comparison['id']}"
    printed = None
    try:
        while comparison["ended_at"] is None:
            waits = next((column["waits_for"] for column in comparison["columns"] if column["waits_for"]), None)
            if waits and waits != printed:
                note(f"waiting: {waits}")
                printed = waits
            time.sleep(_POLL_SECONDS)
            comparison = client.get(path)
    except KeyboardInterrupt:
        with suppress(ApiError):  # it has ended meanwhile
            client.post(f"{path}/cancel")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    return comparison


def failures(comparison: dict[str, Any]) -> bool:
    """Whether an answer failed or was cancelled. Prints why."""
    failed = [column for column in comparison["columns"] if column["state"] != "succeeded"]
    for column in failed:
        error = column["error"] or {
            "detail": f"the answer was {column['state']}",
            "code": column["state"],
            "hint": None,
        }
        print(f"error: {error['detail']} [{error['code']}]", file=sys.stderr)
        if error.get("hint"):
            print(f"  {error['hint']}", file=sys.stderr)
    return bool(failed)
