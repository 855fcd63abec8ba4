"""`read_logs`, `read_metrics` and `wait`: what a run logs and measures, and when it ends."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

import anyio
from mcp_types import CallToolResult
from pydantic import Field

from steerboard.mcp.answers import answer, picked
from steerboard.mcp.boards import Ctx, board_of
from steerboard.mcp.tools.shapes import WRITTEN_BY_OTHERS, run_line
from steerboard.mcp.untrusted import Marks
from steerboard_client.progress import ENDED, share_of
from steerboard_client.wire import path_of

RunName = Annotated[str, Field(description="Id, or PIPELINE.STAGE.", max_length=200)]

_LINE_CHARACTERS = 400
_MOST_SERIES = 40
_FIRST_LOOK, _LONGEST_LOOK = 0.5, 5.0


async def read_logs(
    ctx: Ctx,
    run: RunName,
    lines: Annotated[int, Field(ge=1, le=200)] = 40,
    level: Annotated[list[Literal["info", "warning", "error"]] | None, Field(description="Only these.")] = None,
    older: Annotated[str | None, Field(description="`older` of the answer before.", max_length=1000)] = None,
) -> CallToolResult:
    """The end of a run's log, the oldest line first."""
    async with board_of(ctx) as board:
        path = path_of("runs", run, "logs")
        page = await board.connection.get(path, level=level or [], limit=lines, newest_first=True, cursor=older)
    marks = Marks()
    # As many characters of each line as leave room for all.
    characters = min(_LINE_CHARACTERS, 16_000 // max(1, len(page["items"])))
    shown = [
        picked(line, ("created_at", "level", "attempt")) | {"message": marks.text(line["message"], characters)}
        for line in reversed(page["items"])
    ]
    return answer({"lines": shown, "older": page["next"]}, marks)


async def read_metrics(
    ctx: Ctx,
    run: RunName,
    names: Annotated[list[str] | None, Field(description="These, with their curves.", max_length=20)] = None,
    points: Annotated[int, Field(ge=1, le=100, description="At most this many of each curve.")] = 20,
) -> CallToolResult:
    """Metrics of a run. Without names: the last, lowest and highest value of each."""
    async with board_of(ctx) as board:
        series = await board.connection.get(
            path_of("runs", run, "metrics"), name=names or [], points=points if names else 100
        )
    shown: dict[str, Any] = {}
    for metric in [metric for metric in series if metric["points"]][:_MOST_SERIES]:
        ends = {
            "steps": metric["steps"],
            "last": metric["points"][-1]["value"],
            "low": min(point["low"] for point in metric["points"]),
            "high": max(point["high"] for point in metric["points"]),
        }
        curve = {"curve": [[point["step"], point["value"]] for point in metric["points"]]} if names else {}
        shown[metric["name"]] = ends | curve
    more = [metric["name"] for metric in series[_MOST_SERIES:]]
    return answer({"metrics": shown, "more": more or None})


async def wait(
    ctx: Ctx,
    what: Literal["runs", "pipelines"],
    name: Annotated[str, Field(max_length=200)],
    seconds: Annotated[float, Field(ge=0, le=120)] = 30,
) -> CallToolResult:
    """Wait until a run or a pipeline has ended, or for so many seconds, and show how far it is."""
    began, pause = time.monotonic(), _FIRST_LOOK
    async with board_of(ctx) as board:
        followed: Any = await (board.run(name) if what == "runs" else board.pipeline(name))
        while True:
            runs = await followed.renewed_runs()
            left = seconds - (time.monotonic() - began)
            done = sum(1.0 if run.state in ENDED else share_of(run) for run in runs)
            await ctx.report_progress(round(done, 3), len(runs))
            if left <= 0 or all(run.state in ENDED for run in runs):
                break
            await anyio.sleep(min(pause, left))
            pause = min(_LONGEST_LOOK, pause * 1.5)
    marks = Marks()
    thing = followed.info.model_dump(mode="json")
    lines = [run_line(run.model_dump(mode="json")) for run in runs]
    ended = {
        "ended": all(run.state in ENDED for run in runs),
        "state": followed.state,
        **picked(thing, ("reason", "reason_code", "error")),
        "runs": lines,
    }
    return answer(marks.within(ended, WRITTEN_BY_OTHERS), marks)
