"""What is known before a start: faults, warnings, rows that would be cut, memory, cost, and whether anyone works."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio

from steerboard.mcp.answers import picked
from steerboard.mcp.refusals import Refused
from steerboard.mcp.tools.shapes import kind_card
from steerboard.mcp.tools.stage_costs import costs_of_stages, whole_cost
from steerboard_client import ApiError
from steerboard_client.aio import Board
from steerboard_client.wire import path_of

Found = dict[str, Any]

_ROWS_SECONDS, _LOOK_SECONDS = 20.0, 0.5
_UNDER_WAY = ("pending", "queued", "running")
_SECONDS_OF_AN_HOUR = 3600


async def work_of(board: Board, kind: str, inputs: Mapping[str, str], settings: Mapping[str, Any]) -> Found:
    """What the API takes of a run. Raises `Refused` (`unknown_kind`)."""
    card = await kind_card(board, kind)
    method = {"method": card["method"]} if card["method"] else {}
    return {"config": {**settings, "run": card["kind"], **method}, "inputs": dict(inputs)}


async def run_check(board: Board, work: Found, pool: str) -> Found:
    """Raises `ApiError` for what a start would refuse. `problems`: what makes a start pointless or expensive."""
    workers = await _workers(board, pool)
    rows = await _rows(board, workers, lambda: board.connection.post("runs/row-check", work | {"pool": pool}))
    # Afterwards, since it knows what the rows' check has found.
    estimate = await board.connection.post("runs/estimate", work)
    problems = [_problem(warning) for warning in estimate["warnings"] if warning["level"] == "serious"]
    memory = [pool_ for pool_ in estimate["memory"] if pool_["pool"] == pool]
    if any(pool_["fits"] is False for pool_ in memory):
        problems.append({"code": "does_not_fit", "detail": f"It needs more memory than a device of {pool} has."})
    if isinstance(rows, dict) and rows.get("refusal"):
        problems.append({"code": "rows_refused", "detail": rows["refusal"]})
    cost = picked(estimate, ("device_seconds_low", "device_seconds", "device_seconds_high"))
    return {
        "problems": [*problems, *_no_worker(pool, workers)],
        "warnings": [picked(warning, ("code", "level", "message")) for warning in estimate["warnings"]],
        "estimate": {
            **(cost or {"unknown": f"{estimate['finished']} earlier runs of its kind do not tell"}),
            "by": [run["name"] for run in estimate["based_on"]][:5],
        },
        "memory": [picked(pool_, ("pool", "on_gpu", "fits", "bytes", "device_bytes", "problem")) for pool_ in memory],
        "rows": rows,
        "pool": {"name": pool, "workers": workers},
    }


async def recipe_check(board: Board, body: Found) -> Found:
    """The same of a recipe, stage by stage."""
    plan = await board.connection.post("recipes/check", body)
    pools = {stage["pool"]: await _workers(board, stage["pool"]) for stage in plan["stages"]}
    rows = await _rows(board, sum(pools.values()), lambda: _rows_of_stages(board, body))
    if isinstance(rows, dict):
        plan = await board.connection.post("recipes/check", body)  # knows what the rows' check has found
    warnings = [{"stage": stage["name"], **warning} for stage in plan["stages"] for warning in stage["warnings"]]
    problems = [_problem(warning) for warning in warnings if warning["level"] == "serious"]
    costs = await costs_of_stages(board, plan)
    return {
        "recipe": plan["name"],
        "problems": [*problems, *(problem for pool, workers in pools.items() for problem in _no_worker(pool, workers))],
        "warnings": warnings,
        "notes": plan["notes"],
        "stages": [
            {
                "name": stage["name"],
                "does": stage["method"] or stage["kind"],
                "from": list(dict.fromkeys(source["name"] for source in stage["inputs"].values())),
                "estimate": costs[stage["name"]],
            }
            for stage in plan["stages"]
        ],
        "estimate": whole_cost(costs),
        "rows": rows,
    }


def recipe_body(recipe: str | None, text: str | None, settings: Mapping[str, Any], from_stage: str | None) -> Found:
    """What the API takes of a recipe."""
    named = {"text": text} if text is not None else {"recipe": recipe}
    written = [f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in settings.items()]
    return {**named, "set": written, "from_stage": from_stage}


def refuse_problems(check: Found, accept: list[str], max_device_hours: float | None) -> None:
    """Raises `Refused` (`preflight_failed`, `over_budget`) with the check."""
    left = [problem for problem in check["problems"] if problem["code"] not in accept]
    if left:
        raise Refused(
            "; ".join(f"{item['code']}: {item['detail']}" for item in left),
            code="preflight_failed",
            hint=f"Fix it, or start with accept={json.dumps([item['code'] for item in left])} if the user wants that.",
            more={"check": check},
        )
    seconds = check["estimate"].get("device_seconds_high") or check["estimate"].get("device_seconds")
    if max_device_hours is not None and (seconds is None or seconds > max_device_hours * _SECONDS_OF_AN_HOUR):
        costs = "unknown" if seconds is None else f"up to {seconds / _SECONDS_OF_AN_HOUR:.2f} device-hours"
        raise Refused(
            f"Its cost is {costs}, and at most {max_device_hours:g} device-hours are allowed.",
            code="over_budget",
            hint="Make it smaller, or ask the user for a higher max_device_hours.",
            more={"check": check},
        )


def _problem(warning: Found) -> Found:
    return {**picked(warning, ("stage", "code")), "detail": warning["message"]}


def _no_worker(pool: str, workers: int) -> list[Found]:
    return [] if workers else [{"code": "no_worker", "detail": f"The pool {pool} has no worker, so it would wait."}]


async def _workers(board: Board, pool: str) -> int:
    queues = await board.connection.get("/api/v1/system/queues")
    return sum(int(queue["workers"]) for queue in queues if queue["pool"] == pool)


async def _rows(board: Board, workers: int, ask: Callable[[], Awaitable[Any]]) -> Any:
    """What a worker finds that tokenises the rows, after some seconds of waiting; or why none did."""
    if not workers:
        return "not checked: no worker"
    deadline = time.monotonic() + _ROWS_SECONDS
    try:
        while True:
            reply = await ask()
            checks = [reply] if isinstance(reply, dict) and "state" in reply else list((reply or {}).get("checks", []))
            if not any(check["state"] in _UNDER_WAY for check in checks) or time.monotonic() > deadline:
                return _shown(reply)
            for check in checks:
                while await _is_under_way(board, check["run_id"]) and time.monotonic() < deadline:
                    await anyio.sleep(_LOOK_SECONDS)
    except ApiError as error:
        if error.code != "missing_scope":
            raise
        return "not checked: it needs the scope `run`"


async def _is_under_way(board: Board, run: str) -> bool:
    return (await board.connection.get(path_of("runs", run)))["state"] in _UNDER_WAY


async def _rows_of_stages(board: Board, body: Found) -> Found:
    stages = await board.connection.post("recipes/row-checks", body)
    checks = [stage["check"] | {"stages": stage["stages"]} for stage in stages if stage["check"]]
    return {"checks": checks, "not_checked": [stage["stages"] for stage in stages if not stage["check"]]}


def _shown(reply: Any) -> Any:
    names = ("stages", "state", "rows", "checked", "too_long", "refused", "refusal", "reason")
    if isinstance(reply, dict) and "checks" in reply:
        return {"checks": [picked(check, names) for check in reply["checks"]], "by_their_runs": reply["not_checked"]}
    return picked(reply, names) if isinstance(reply, dict) else None
