"""`read_rows` and `read_answers`: what models learn from, and what they write. All of it is by others."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp_types import CallToolResult
from pydantic import Field

from steerboard.mcp.answers import answer, picked
from steerboard.mcp.boards import Ctx, board_of
from steerboard.mcp.tools.reading import Cursor
from steerboard.mcp.untrusted import Marks
from steerboard_client.wire import path_of

_ROOM = 14_000
_LONGEST = 1500


async def read_rows(
    ctx: Ctx,
    dataset: Annotated[str, Field(max_length=200)],
    search: Annotated[str | None, Field(description="Words in the texts of a row.", max_length=500)] = None,
    split: Literal["train", "held_out"] | None = None,
    order: Literal["row", "reward_asc", "reward_desc"] = "row",
    limit: Annotated[int, Field(ge=1, le=20)] = 5,
    cursor: Cursor = None,
) -> CallToolResult:
    """Rows of a dataset, with their rewards where they have some."""
    query = {"q": search, "split": split, "order": order, "limit": limit, "cursor": cursor}
    async with board_of(ctx) as board:
        page = await board.connection.get(path_of("datasets", dataset, "samples"), **query)
    marks = Marks()
    items = [
        picked(row, ("row", "split", "reward")) | {"sample": _texts(row["sample"], marks, _share(page["items"]))}
        for row in page["items"]
    ]
    return answer({"items": items, "next": page["next"]}, marks)


async def read_answers(
    ctx: Ctx,
    evaluation: Annotated[str, Field(max_length=200)],
    category: Annotated[str | None, Field(max_length=200)] = None,
    limit: Annotated[int, Field(ge=1, le=10)] = 3,
    after: Annotated[int, Field(ge=-1, description="`next` of the page before.")] = -1,
) -> CallToolResult:
    """Prompts of an evaluation with every entrant's answers and rewards."""
    path = path_of("evaluations", evaluation, "prompts")
    query: dict[str, Any] = {"limit": limit, "category": category, "after": None if after < 0 else after}
    async with board_of(ctx) as board:
        page = await board.connection.get(path, **query)
    marks = Marks()
    room = _share([answer for prompt in page["items"] for answer in (prompt, *prompt["responses"])])
    items = [
        picked(prompt, ("position", "question_id", "category"))
        | {"messages": _texts(prompt["messages"], marks, room)}
        | {
            "answers": [
                picked(response, ("entrant", "sample", "rewards")) | {"turns": _texts(response["turns"], marks, room)}
                for response in prompt["responses"]
            ]
        }
        for prompt in page["items"]
    ]
    return answer({"items": items, "next": page["next"]}, marks)


def _share(things: list[Any]) -> int:
    return min(_LONGEST, _ROOM // (2 * max(1, len(things))))


def _texts(value: Any, marks: Marks, characters: int) -> Any:
    """Every text of a row, but the roles of its messages."""
    if isinstance(value, str):
        return marks.text(value, characters)
    if isinstance(value, list):
        return [_texts(part, marks, characters) for part in value]
    if isinstance(value, dict):
        return {key: part if key == "role" else _texts(part, marks, characters) for key, part in value.items() if part}
    return value
