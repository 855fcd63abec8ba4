"""The cost of a recipe before it starts, stage by stage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steerboard.mcp.answers import picked
from steerboard_client import ApiError
from steerboard_client.aio import Board
from steerboard_client.wire import path_of

Found = dict[str, Any]

_SECONDS = ("device_seconds_low", "device_seconds", "device_seconds_high")
# So many of the newest pipelines of the recipe are looked through for stages that ran in them.
_LOOKED_AT = 5
_UNKNOWN = "no earlier run is like it"


async def costs_of_stages(board: Board, plan: Mapping[str, Any]) -> dict[str, Found]:
    """The cost of each stage: predicted by its own settings and data where its inputs already exist, else what it took
    in the newest pipeline of the recipe in which it ran; or `unknown`."""
    before = await _took_before(board, plan["name"], {stage["name"] for stage in plan["stages"]})
    return {
        stage["name"]: await _predicted(board, stage) or before.get(stage["name"]) or {"unknown": _UNKNOWN}
        for stage in plan["stages"]
    }


def whole_cost(stages: Mapping[str, Found]) -> Found:
    """The sum of what is known. It is `unknown` where a stage is, as a budget must not take it for the whole; then
    `known_device_seconds` is what the others take."""
    missing = [name for name, cost in stages.items() if "unknown" in cost]
    known = [cost for cost in stages.values() if "unknown" not in cost]
    sums = {name: round(sum(float(cost.get(name) or cost["device_seconds"]) for cost in known), 3) for name in _SECONDS}
    if not missing:
        return sums
    return {
        "unknown": f"nothing is known of {', '.join(missing)}",
        **({"known_device_seconds": sums["device_seconds"]} if known else {}),
    }


async def _predicted(board: Board, stage: Mapping[str, Any]) -> Found | None:
    if any(source["type"] == "stage" for source in stage["inputs"].values()):
        return None
    inputs = {slot: source["name"] for slot, source in stage["inputs"].items()}
    try:
        estimate = await board.connection.post("runs/estimate", {"config": stage["config"], "inputs": inputs})
    except ApiError:
        return None  # such as one that only a recipe starts
    cost = picked(estimate, _SECONDS)
    return {**cost, "by": [run["name"] for run in estimate["based_on"]][:5]} if cost else None


async def _took_before(board: Board, recipe: str, wanted: set[str]) -> dict[str, Found]:
    page = await board.connection.get("pipelines", limit=100)
    named = [pipeline["name"] for pipeline in page["items"] if pipeline["recipe"] == recipe]
    took: dict[str, Found] = {}
    for name in named[:_LOOKED_AT]:
        if wanted <= took.keys():
            break
        pipeline = await board.connection.get(path_of("pipelines", name))
        for run in pipeline["runs"]:
            whole = run["state"] == "succeeded" and run["reused_from_id"] is None
            if whole and run["device_seconds"] and run["name"] not in took:
                took[run["name"]] = {"device_seconds": run["device_seconds"], "by": [name]}
    return took
