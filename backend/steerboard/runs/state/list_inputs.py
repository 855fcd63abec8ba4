"""A run's lists without the items whose runs were skipped."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import ValidationError
from sqlalchemy.orm import Session

from steerboard.runs.tables import Run, RunInput
from steerboard_contracts.run_config import stored_config
from steerboard_contracts.run_kinds import kind_of

# The reward model that chooses among an entrant's answers is left out along with the entrant.
_ALONG = {"best_of": "entrants"}


class NothingLeft(Exception):
    """A list that the run needs would be empty."""


def copied(row: RunInput, **changes: Any) -> RunInput:
    fields = ("run_id", "name", "upstream_run_id", "upstream_output", "dataset_id", "model_id")
    return RunInput(**{**{field: getattr(row, field) for field in fields}, **changes})


def give(
    session: Session, run: Run, rows: Sequence[RunInput], kept: Sequence[RunInput], left_out: Collection[str]
) -> None:
    """Gives a run the inputs `kept`, copies of them, instead of `rows`, and takes the items `left_out` from its lists.
    Raises `NothingLeft`, and has changed nothing then."""
    kept = [row for row in kept if _along(row.name) not in left_out]
    config = _without(run.config, left_out)
    if {name.partition(".")[0] for name in left_out} - {row.name.partition(".")[0] for row in kept}:
        raise NothingLeft("all runs of a required input list were dropped or skipped")
    try:
        stored_config(config)
    except ValidationError:
        raise NothingLeft("all runs of a required input list were dropped or skipped") from None
    names = _numbered([row.name for row in kept], left_out)
    for row in rows:
        session.delete(row)
    session.flush()
    for row, name in zip(kept, names, strict=True):
        row.name = name
        session.add(row)
    run.config = config


def _along(name: str) -> str:
    slot, dot, place = name.partition(".")
    return _ALONG.get(slot, slot) + dot + place


def _without(config: Mapping[str, Any], left_out: Collection[str]) -> dict[str, Any]:
    """The config without the items of its lists that belong to these inputs."""
    changed = dict(config)
    kind = kind_of(config.get("run"), config.get("method"))
    for field, slot in (kind.lists if kind else {}).items():
        items = config.get(field)
        if isinstance(items, list) and items:
            changed[field] = [item for place, item in enumerate(items) if f"{slot}.{place}" not in left_out]
    return changed


def _numbered(names: Sequence[str], left_out: Collection[str]) -> list[str]:
    """The names of the inputs that are left, without gaps."""

    def moved(name: str) -> str:
        slot, dot, place = name.partition(".")
        if not dot or not place.isdigit():
            return name
        before = sum(f"{_ALONG.get(slot, slot)}.{other}" in left_out for other in range(int(place)))
        return f"{slot}.{int(place) - before}"

    return [moved(name) for name in names]
