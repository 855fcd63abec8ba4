"""All tools, with what clients may know of each before they call it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mcp_types import ToolAnnotations

from steerboard.mcp.tools.comparing import compare_runs
from steerboard.mcp.tools.data import read_answers, read_rows
from steerboard.mcp.tools.ending import archive, cancel, delete
from steerboard.mcp.tools.reading import inspect, list_
from steerboard.mcp.tools.reports import gate, read_report
from steerboard.mcp.tools.starting import check_recipe, check_run, evaluate, start_recipe, start_run
from steerboard.mcp.tools.watching import read_logs, read_metrics, wait

_READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
_STARTS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
_ENDS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)

TOOLS: dict[Callable[..., Any], ToolAnnotations] = {
    **dict.fromkeys((list_, inspect, compare_runs), _READS),
    **dict.fromkeys((read_logs, read_metrics, wait, read_rows, read_answers, read_report, gate), _READS),
    **dict.fromkeys((check_run, check_recipe), _READS),
    **dict.fromkeys((start_run, start_recipe, evaluate), _STARTS),
    **dict.fromkeys((cancel, archive, delete), _ENDS),
}
