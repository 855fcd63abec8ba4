"""`list` and `inspect`: what is in the project, and one thing of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp_types import CallToolResult
from pydantic import Field

from steerboard.mcp.answers import answer, picked
from steerboard.mcp.boards import Ctx, board_of
from steerboard.mcp.refusals import Refused
from steerboard.mcp.tools.shapes import LISTED, SHOWN, WRITTEN_BY_OTHERS, kind_card, run_line
from steerboard.mcp.untrusted import Marks
from steerboard_client.aio import Board
from steerboard_client.wire import path_of

Listed = Literal["datasets", "models", "runs", "pipelines", "evaluations", "recipes", "kinds"]
Cursor = Annotated[str | None, Field(description="`next` of the page before.", max_length=1000)]


async def list_(
    ctx: Ctx,
    what: Annotated[Listed, Field(description="`kinds`: what a run can do, each training method being one.")],
    search: Annotated[str | None, Field(description="Part of a name; not of runs.", max_length=200)] = None,
    filter: Annotated[
        str | None,
        Field(
            description="Only of runs, such as `state:failed eval_loss<1.2 tag:good -judge is:archived`.",
            max_length=2000,
        ),
    ] = None,
    limit: Annotated[int, Field(ge=1, le=50)] = 20,
    cursor: Cursor = None,
) -> CallToolResult:
    """List things of the project, the newest first, a page at a time."""
    if (filter if what != "runs" else search) is not None:
        raise Refused(
            f"{what} cannot be found by this.", code="bad_arguments", hint="`filter` is for runs, `search` for others."
        )
    async with board_of(ctx) as board:
        if what in ("recipes", "kinds"):
            items, following = _page(await _all(board, what), search, limit, cursor)
        else:
            page = await board.connection.get(what, search=search, filter=filter, limit=limit, cursor=cursor)
            items, following = page["items"], page["next"]
    marks = Marks()
    shown = [marks.within(LISTED[what](item), WRITTEN_BY_OTHERS, 200) for item in items]
    return answer({"items": shown, "next": following}, marks)


async def _all(board: Board, what: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = await board.connection.get("recipes" if what == "recipes" else "schemas")
    return listed


def _page(
    items: list[dict[str, Any]], search: str | None, limit: int, cursor: str | None
) -> tuple[list[dict[str, Any]], str | None]:
    """These lists are short, and come whole; the cursor is a place in them."""
    if cursor is not None and not cursor.isdecimal():
        raise Refused("The cursor is not one of this list.", code="bad_cursor", hint="Begin again without a cursor.")
    names = [item for item in items if search is None or search.lower() in str(item.get("key") or item["name"]).lower()]
    begin = int(cursor or 0)
    end = begin + limit
    return names[begin:end], str(end) if end < len(names) else None


async def inspect(
    ctx: Ctx,
    what: Listed,
    name: Annotated[str, Field(description="Name or id; a run of a pipeline is PIPELINE.STAGE.", max_length=200)],
    fields: Annotated[
        list[str] | None, Field(description="Only these fields of the whole thing, as the API has it.", max_length=30)
    ] = None,
) -> CallToolResult:
    """Show one thing. Of a kind: its inputs, and the JSON Schema of its settings; of a recipe: its YAML."""
    async with board_of(ctx) as board:
        if what == "kinds":
            thing = await kind_card(board, name)
            schema = next(
                schema
                for schema in await board.connection.get(path_of("schemas", thing["kind"]))
                if schema["key"] == thing["key"]
            )
            thing |= {"settings": schema["config_schema"]}
        else:
            thing = await board.connection.get(path_of(what, name))
            if what in ("datasets", "models", "evaluations"):
                thing |= {"marks": await board.connection.get(path_of("marks", what.removesuffix("s"), thing["id"]))}
    if fields is not None and (unknown := [field for field in fields if field not in thing]):
        detail = f"{what} have no field {', '.join(map(repr, unknown))}."
        raise Refused(detail, code="bad_arguments", hint=f"They have {', '.join(thing)}.")
    if what == "pipelines" and fields is None:
        thing["runs"] = [run_line(run) for run in thing["runs"]]
    if isinstance(thing.get("marks"), dict):
        thing["marks"] = picked(thing["marks"], ("tags", "notes", "favourite", "archived_at"))
    marks = Marks()
    return answer(marks.within(picked(thing, fields or SHOWN[what]), WRITTEN_BY_OTHERS), marks)
