"""`read_report`: who won, by how much, and with which reservations; then part by part."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp_types import CallToolResult
from pydantic import Field

from steerboard.mcp.answers import answer, packed, picked
from steerboard.mcp.boards import Ctx, board_of
from steerboard.mcp.refusals import Refused
from steerboard.mcp.tools.shapes import WRITTEN_BY_OTHERS
from steerboard.mcp.untrusted import Marks
from steerboard_client.wire import path_of

_FIRST = ("evaluation", "prompts_from", "prompts", "baseline", "finished", "headline", "warnings", "unfinished")
_BY_OTHERS = WRITTEN_BY_OTHERS | {"prompt", "response", "text", "turns", "answer"}
_PAGE = 20


async def read_report(
    ctx: Ctx,
    of: Literal["evaluations", "pipelines"],
    name: Annotated[str, Field(max_length=200)],
    part: Annotated[str | None, Field(description="One of the `parts` of the first answer.", max_length=80)] = None,
    begin: Annotated[int, Field(ge=0, description="`next` of the page before, of a part that is a list.")] = 0,
) -> CallToolResult:
    """The report of an evaluation, or of the one that ends a pipeline. Begin without a part."""
    async with board_of(ctx) as board:
        report: dict[str, Any] = await board.connection.get(path_of(of, name, "report"))
    # A pipeline's has the evaluation's in it; both are read as one.
    parts = {**report, **(report.get("report") or {})}
    parts.pop("report", None)
    marks = Marks()
    if part is None:
        others = {name: len(packed({"": value})) for name, value in parts.items() if value and name not in _FIRST}
        sized = {name: size for name, size in others.items() if size > 20}
        first = {"headline": _without_sources(parts["headline"])} if parts.get("headline") else {}
        body = picked(parts, _FIRST) | first | {"parts": sized}
        return answer(marks.within(body, WRITTEN_BY_OTHERS), marks)
    if part not in parts:
        raise Refused(f"The report has no part {part!r}.", code="no_such_part", hint=f"It has {', '.join(parts)}.")
    value, following = parts[part], None
    if isinstance(value, list):
        following = begin + _PAGE if begin + _PAGE < len(value) else None
        value = value[begin : begin + _PAGE]
    return answer(marks.within({part: value, "next": following}, _BY_OTHERS), marks)


async def gate(
    ctx: Ctx,
    of: Literal["evaluations", "pipelines"],
    name: Annotated[str, Field(max_length=200)],
    rules: Annotated[
        list[dict[str, Any]],
        Field(
            description="Such as {'metric': 'win_rate', 'entrant': 'dt', 'op': '>', 'value': 0.5}; see docs/ci.md.",
            min_length=1,
            max_length=100,
        ),
    ],
) -> CallToolResult:
    """Whether an evaluation, or the one that ends a pipeline, meets rules: `pass`, `fail`, or `invalid` where a rule
    cannot be decided. Notices of gates are sent."""
    async with board_of(ctx) as board:
        verdict: dict[str, Any] = await board.connection.post(f"{path_of(of, name)}/gate", {"rules": rules})
    marks = Marks()
    return answer(marks.within(verdict, WRITTEN_BY_OTHERS), marks)


def _without_sources(headline: dict[str, Any]) -> dict[str, Any]:
    """`sources` repeats it for each source."""
    return {name: value for name, value in headline.items() if name != "sources"}
