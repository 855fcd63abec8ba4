"""A question and the calls that answer it, as xLAM and APIGen have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from steerboard.datasets.parsing.layouts.layout import Convert, Layout, Row, without
from steerboard_contracts.tools import parsed
from steerboard_files.records import Problem

_QUESTION, _CALLS, _TOOLS = "query", "answers", "tools"


def _xlam(rows: Sequence[Row]) -> Convert | None:
    return _from_xlam if any(_QUESTION in row and _TOOLS in row and _calls(row.get(_CALLS)) for row in rows) else None


def _from_xlam(_: int, row: Row) -> Iterator[Row | Problem]:
    calls = _calls(row.get(_CALLS))
    if calls:
        answer = {"role": "assistant", "content": "", "tool_calls": calls}
        yield {"prompt": row.get(_QUESTION), "response": answer, **without(row, _QUESTION, _CALLS)}
    else:
        yield Problem("bad_row", f"{_CALLS}: is not a list of calls, each with a `name`")


def _calls(given: Any) -> list[Row] | None:
    """Calls, perhaps as JSON; None for anything else."""
    try:
        calls = parsed(given)
    except ValueError:
        return None
    named = isinstance(calls, list) and all(
        isinstance(call, dict) and isinstance(call.get("name"), str) for call in calls
    )
    return calls if named else None


FUNCTION_CALLS = (Layout("xLAM", "xLAM's query, answers and tools, of which the answers are calls of tools", _xlam),)
