"""What of a thing an agent is shown: in a list the few fields to choose by, by itself those to decide by."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from steerboard.mcp.answers import picked
from steerboard.mcp.refusals import Refused
from steerboard_client.aio import Board

Shape = Callable[[dict[str, Any]], dict[str, Any]]

# People, files, models and stages write these, whatever thing has them.
WRITTEN_BY_OTHERS = frozenset(
    {"description", "notes", "reason", "detail", "message", "recipe_text", "tags", "template", "stop", "file"}
)


def _only(*names: str) -> Shape:
    return partial(picked, names=names)


def run_line(run: dict[str, Any]) -> dict[str, Any]:
    pipeline = (run.get("pipeline") or {}).get("name")
    shown = picked(run, ("id", "kind", "method", "state", "reason_code", "progress", "device_seconds", "created_at"))
    warnings = [warning["code"] for warning in run.get("warnings") or []]
    name = f"{pipeline}.{run['name']}" if pipeline else run["name"]
    return {"name": name, **shown, **({"warnings": warnings} if warnings else {})}


LISTED: dict[str, Shape] = {
    "datasets": _only("name", "id", "kind", "rows", "held_out_rows", "reward_source", "created_at"),
    "models": _only("name", "id", "role", "method", "stage", "size", "created_at"),
    "runs": run_line,
    "pipelines": _only("name", "id", "recipe", "state", "stages", "device_seconds", "created_at"),
    "evaluations": _only("name", "id", "state", "prompts", "entrants", "judges", "campaigns", "created_at"),
    "recipes": _only("name", "description", "inputs"),
    "kinds": _only("key", "title", "about"),
}

SHOWN: dict[str, tuple[str, ...]] = {
    "datasets": (
        *("name", "id", "kind", "rows", "held_out_rows", "reward_source", "rewards", "prompt_characters"),
        *("response_characters", "parent_id", "run_id", "held_out_changes", "created_at", "marks"),
    ),
    "models": (
        *("name", "id", "role", "method", "stage", "answers", "size", "info", "parent_id", "run_id", "in_evaluations"),
        *("created_at", "marks"),
    ),
    "runs": (
        *("name", "id", "pipeline", "kind", "method", "state", "reason", "reason_code", "error", "progress", "pool"),
        *("queue_position", "warnings", "findings", "summary", "inputs", "outputs", "device_seconds", "resumable"),
        *("resume_hint", "config", "changes", "created_at", "started_at", "ended_at", "marks"),
    ),
    "pipelines": (
        *("name", "id", "recipe", "state", "stages", "device_seconds", "settings", "runs", "created_at", "ended_at"),
    ),
    "evaluations": (
        *("name", "id", "description", "state", "prompts", "turns", "prompts_from", "unfinished", "entrants"),
        *("reward_assessments", "judges", "campaigns", "contamination", "created_at", "marks"),
    ),
    "recipes": ("name", "description", "inputs", "text"),
    "kinds": ("key", "title", "about", "inputs", "makes", "needs_field", "settings"),
}


async def kind_card(board: Board, key: str) -> dict[str, Any]:
    """A run kind, or training by one method. Raises `Refused` (`unknown_kind`)."""
    cards: list[dict[str, Any]] = await board.connection.get("schemas")
    for card in cards:
        if card["key"] == key:
            return card
    keys = ", ".join(card["key"] for card in cards)
    raise Refused(f"There is no kind {key!r}.", code="unknown_kind", hint=f"There are {keys}.")
