"""`cancel`, `archive` and `delete`: each asks before it does what cannot be undone."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Elicit, Resolve
from mcp_types import CallToolResult
from pydantic import Field

from steerboard.mcp.answers import answer, picked
from steerboard.mcp.boards import Ctx, board_of
from steerboard.mcp.confirm import Confirmation, Outcome, ask, refuse_unless_confirmed
from steerboard.mcp.refusals import Refused
from steerboard.mcp.tools.shapes import run_line
from steerboard_client.aio import Board
from steerboard_client.wire import path_of

Name = Annotated[str, Field(description="Name or id; a run of a pipeline is PIPELINE.STAGE.", max_length=200)]
Confirm = Annotated[
    bool, Field(description="Only for clients that cannot ask their user: true once the user has agreed.")
]
Cancelled = Literal["runs", "pipelines"]
Archived = Literal["runs", "pipelines", "models", "datasets", "evaluations"]
Deleted = Literal["runs", "models", "datasets", "evaluations"]


async def ask_to_cancel(ctx: Ctx, what: Cancelled, name: str, confirm: bool) -> Elicit[Confirmation] | Confirmation:
    full = await _name_of(ctx, what, name)
    return ask(ctx, f"Cancel the {what.removesuffix('s')} {full}? Runs that need its output end with it.", confirm)


async def cancel(
    ctx: Ctx,
    what: Cancelled,
    name: Name,
    confirmed: Annotated[Outcome, Resolve(ask_to_cancel)],
    confirm: Confirm = False,
) -> CallToolResult:
    """Cancel a run or a pipeline. The user is asked first."""
    refuse_unless_confirmed(confirmed)
    async with board_of(ctx) as board:
        ended = await board.connection.post(f"{path_of(what, name)}/cancel")
    return answer(
        {"cancelled": run_line(ended) if what == "runs" else picked(ended, ("name", "id", "state", "stages"))}
    )


async def ask_to_archive(
    ctx: Ctx, what: Archived, name: str, restore: bool, confirm: bool
) -> Elicit[Confirmation] | Confirmation:
    full = await _name_of(ctx, what, name)
    if restore:
        return Confirmation(confirm=True)
    return ask(ctx, f"Archive the {what.removesuffix('s')} {full}? Lists will leave it out.", confirm)


async def archive(
    ctx: Ctx,
    what: Archived,
    name: Name,
    confirmed: Annotated[Outcome, Resolve(ask_to_archive)],
    restore: Annotated[bool, Field(description="Take it back from the archive.")] = False,
    confirm: Confirm = False,
) -> CallToolResult:
    """Hide a thing from lists, or take it back. The user is asked before it is hidden."""
    refuse_unless_confirmed(confirmed)
    async with board_of(ctx) as board:
        path = path_of("marks", what.removesuffix("s"), name)
        response = await board.connection.request("PATCH", path, json={"archived": not restore})
    return answer({"name": name, **picked(response.json(), ("tags", "archived_at", "archived_by"))})


async def ask_to_delete(ctx: Ctx, what: Deleted, name: str, confirm: bool) -> Elicit[Confirmation] | Confirmation:
    full = await _name_of(ctx, what, name)
    lost = ""
    if what == "runs":
        async with board_of(ctx) as board:
            lost = _lost(await _change(board, "run-changes/preview", name))
    return ask(ctx, f"Delete the {what.removesuffix('s')} {full} for good?{lost}", confirm)


async def delete(
    ctx: Ctx,
    what: Deleted,
    name: Name,
    confirmed: Annotated[Outcome, Resolve(ask_to_delete)],
    confirm: Confirm = False,
) -> CallToolResult:
    """Delete a thing that nothing else needs. The user is asked first."""
    refuse_unless_confirmed(confirmed)
    async with board_of(ctx) as board:
        if what == "runs":
            await _change(board, "run-changes", name)
        else:
            await board.connection.request("DELETE", path_of(what, name))
    return answer({"deleted": {"what": what, "name": name}})


async def _name_of(ctx: Ctx, what: str, name: str) -> str:
    """The name as people call it. Raises `ApiError` for what is not there, before anyone is asked."""
    async with board_of(ctx) as board:
        if what == "runs":
            return (await board.run(name)).name
        return str((await board.connection.get(path_of(what, name)))["name"])


async def _change(board: Board, path: str, run: str) -> dict[str, Any]:
    """Raises `Refused` (`cannot_delete`) with the reason of a run that cannot be deleted."""
    id_ = (await board.run(run)).id
    changed: dict[str, Any] = await board.connection.post(path, {"action": "delete", "runs": [id_]})
    for run_ in changed["skipped"]:
        needs = ", ".join(other["name"] for other in run_["needs"][:10])
        hint = (
            f"It can only be deleted with {needs}, in the dashboard."
            if needs
            else "Its page in the dashboard has more."
        )
        raise Refused(f"{run} cannot be deleted: {run_['why']}.", code="cannot_delete", hint=hint)
    return changed


def _lost(preview: dict[str, Any]) -> str:
    lost = [f"{thing['type']} {thing['name']}" for change in preview["done"] for thing in change["loses"]][:10]
    return f" These go with it: {', '.join(lost)}." if lost else ""
