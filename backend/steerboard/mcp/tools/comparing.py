"""`compare_runs`: in what runs differ, and what they measured."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from mcp_types import CallToolResult
from pydantic import Field

from steerboard.mcp.answers import answer, picked
from steerboard.mcp.boards import Ctx, board_of
from steerboard_client.schemas import MetricSeries

_MOST_RUNS = 6
_MOST_METRICS = 12


async def compare_runs(
    ctx: Ctx,
    runs: Annotated[list[str], Field(min_length=2, max_length=_MOST_RUNS)],
    metrics: Annotated[
        list[str] | None, Field(description="By default those that most of the runs have.", max_length=40)
    ] = None,
) -> CallToolResult:
    """Compare runs: settings and inputs in which they differ, states, costs, and metrics at their ends."""
    async with board_of(ctx) as board:
        handles = await asyncio.gather(*(board.run(run) for run in runs))
        series = await asyncio.gather(*(run.series(*(metrics or ()), points=200) for run in handles))
    columns = [
        (run.name, run.info.model_dump(mode="json"), _ends(curves)) for run, curves in zip(handles, series, strict=True)
    ]
    settings = [_flat(info["config"]) for _, info, _ in columns]
    inputs = [{input_["name"]: input_["label"] for input_ in info["inputs"]} for _, info, _ in columns]
    shared = _shared([list(ends) for _, _, ends in columns]) if metrics is None else metrics
    rows = {
        name: {
            **picked(info, ("state", "kind", "method", "reason_code", "device_seconds", "summary")),
            "metrics": {metric: ends[metric] for metric in shared if metric in ends},
        }
        for name, info, ends in columns
    }
    names = list(rows)
    body = {"runs": rows, "settings": _differing(names, settings), "inputs": _differing(names, inputs)}
    return answer(body | {"last": "the mean of the last 200th of the steps"})


def _ends(curves: list[MetricSeries]) -> dict[str, dict[str, float]]:
    return {
        curve.name: {
            "last": curve.points[-1].value,
            "low": min(point.low for point in curve.points),
            "high": max(point.high for point in curve.points),
        }
        for curve in curves
        if curve.points
    }


def _flat(config: dict[str, Any], above: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in config.items():
        flat |= _flat(value, f"{above}{name}.") if isinstance(value, dict) else {f"{above}{name}": value}
    return flat


def _differing(names: list[str], values: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The values by setting and run, without what all have alike."""
    keys = dict.fromkeys(key for row in values for key in row)
    rows = {key: [row.get(key) for row in values] for key in keys}
    return {key: dict(zip(names, row, strict=True)) for key, row in rows.items() if any(cell != row[0] for cell in row)}


def _shared(metrics: list[list[str]]) -> list[str]:
    """The metrics that most runs have come first, in the order of the first run that has them."""
    counts: dict[str, int] = {}
    for names in metrics:
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    return sorted(counts, key=lambda name: -counts[name])[:_MOST_METRICS]
