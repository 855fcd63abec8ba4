"""Rows of training runs are checked by a worker before they start: a command waits some seconds, and prints what was
found.

What warns, or refuses, comes with the answer to the start.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from steerboard.cli.client import Client, path_of
from steerboard.cli.output.console import note
from steerboard.cli.output.listing import plain
from steerboard.cli.output.run_rows import some_of

CheckOption = Annotated[
    bool, typer.Option(help="Wait a few seconds before training for a worker to count rows that are too long.")
]

# For all checks of a start, and from one look to the next.
_CHECK_SECONDS, _LOOK_SECONDS = 20.0, 0.5
_UNDER_WAY = ("pending", "queued", "running")


def check_rows_of_run(client: Client, work: dict[str, Any]) -> None:
    if not _is_alive(client, work["pool"]):
        note(
            plain(f"The rows are not checked before the start because {_no_worker(work['pool'])}. The run checks them.")
        )
        return
    check = client.post("runs/row-check", work)
    if check and _wait(client, [check]):
        check = client.post("runs/row-check", work)
    if check and (words := _outcome(check)):
        note(plain(words))


def check_rows_of_stages(client: Client, ask: Callable[[], list[dict[str, Any]]]) -> None:
    """`ask` asks for the checks of a recipe: those that are new begin."""
    checks = ask()
    alive = {check["pool"]: _is_alive(client, check["pool"]) for check in checks if check["check"]}
    if _wait(client, [check["check"] for check in checks if check["check"] and alive[check["pool"]]]):
        checks = ask()
    outcomes: dict[str, list[str]] = {}
    unchecked: dict[str, list[str]] = {}
    for check in checks:
        if check["check"] is None:
            unchecked[check["not_checked"]] = check["stages"]
        elif not alive[check["pool"]]:
            unchecked.setdefault(_no_worker(check["pool"]), []).extend(check["stages"])
        elif words := _outcome(check["check"]):
            outcomes.setdefault(words, []).extend(check["stages"])
    for words, stages in outcomes.items():
        note(plain(f"{some_of(stages)}: {words}"))
    if unchecked:
        reasons = "; ".join(f"{some_of(stages)} ({reason})" for reason, stages in unchecked.items())
        note(plain(f"Checked by their runs, not before the start: {reasons}."))


def _is_alive(client: Client, pool: str) -> bool:
    return any(queue["workers"] for queue in client.get("/api/v1/system/queues") if queue["pool"] == pool)


def _no_worker(pool: str) -> str:
    return f"pool {pool} has no worker"


def _wait(client: Client, checks: Sequence[dict[str, Any]]) -> bool:
    """Waits until they have ended, or for some seconds. Returns whether there was anything to wait for."""
    waiting = [check["run_id"] for check in checks if check["state"] in _UNDER_WAY]
    deadline = time.monotonic() + _CHECK_SECONDS
    for run in waiting:
        while client.get(path_of("runs", run))["state"] in _UNDER_WAY and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
    return bool(waiting)


def _outcome(check: dict[str, Any]) -> str | None:
    if check["state"] in _UNDER_WAY:
        return "The rows are still being checked; the run counts them, too."
    if check["state"] != "succeeded":
        return f"The rows could not be checked: {check['reason']}."
    if check["refusal"] or check["warning"]:
        return None
    verb = "are" if check["too_long"] > 1 else "is"
    return f"{check['too_long'] or 'None'} of {check['checked']:,} checked rows {verb} too long."
