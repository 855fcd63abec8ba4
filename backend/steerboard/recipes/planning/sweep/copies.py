"""How many copies of each stage a sweep takes, counted before any is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from steerboard.recipes.document import Document
from steerboard.recipes.limits import MAX_STAGES, Size, refuse_large, refuse_many, size_of
from steerboard.recipes.planning.references import references, value_at
from steerboard.recipes.planning.sweep.block import SWEEP, Sweep
from steerboard_contracts.run_kinds import evaluates


def refuse_many_copies(document: Document, sweep: Sweep) -> None:
    """Raises `InvalidRecipe` (`recipe_too_large`) where the variants and their rungs come to too many stages or values.

    A reference that varies counts as one to each of its values, so that a stage is never counted too low.
    """
    stages: Mapping[str, Any] = document.data["stages"]
    halving = sweep.block.halving
    halved = (halving.figure or sweep.block.metric).partition(".")[0] if halving is not None else None
    number, size = 0, Size()
    for stage, fields in stages.items():
        document.budget.check()
        copies = _copies(sweep, _upstream(stages, _varied_references(sweep), stage))
        if isinstance(fields, dict) and evaluates(fields.get("run")):
            copies = 1
        if halving is not None and stage == halved:
            copies *= len(halving.rungs)
        number += copies
        size += size_of(fields) * copies
    where = document.location((SWEEP,))
    refuse_many(where, "stages in all its variants", number, MAX_STAGES)
    refuse_large(where, size, " in all its variants")


def _varied_references(sweep: Sweep) -> dict[str, set[str]]:
    """By stage: what a swept field of it may name."""
    found: dict[str, set[str]] = {}
    for choices in sweep.choices:
        for field, choice in choices.items():
            if isinstance(choice.value, str):
                found.setdefault(field.partition(".")[0], set()).add(choice.value.partition(".")[0])
    return found


def _upstream(stages: Mapping[str, Any], varied: Mapping[str, set[str]], stage: str) -> set[str]:
    """The stage, and all that it reads."""
    found: set[str] = set()
    waiting = [stage]
    while waiting:
        name = waiting.pop()
        if name in found or name not in stages:
            continue
        found.add(name)
        waiting += varied.get(name, ())
        fields = stages[name]
        if isinstance(fields, dict):
            waiting += [str(value_at(fields, at)).partition(".")[0] for at in references(fields)]
    return found


def _copies(sweep: Sweep, upstream: set[str]) -> int:
    """One for each different combination of the swept values that reach a stage."""
    fields = [field for field in sweep.block.vary if field.partition(".")[0] in upstream]
    return len({tuple(repr(choices[field].value) for field in fields) for choices in sweep.choices})
