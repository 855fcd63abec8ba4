"""`--set STAGE=null`: a stage that a start leaves out. What an evaluation would only have compared leaves with it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from steerboard.recipes.document import Document, dotted
from steerboard.recipes.errors import Faults
from steerboard.recipes.overrides import Override
from steerboard.recipes.places import Path
from steerboard.recipes.planning.references import references, value_at
from steerboard_contracts.run_kinds import evaluates
from steerboard_contracts.wording import listed

_ENTRANTS = "entrants"


@dataclass(frozen=True)
class LeftOut:
    """`unread`: the inputs that nothing reads any more."""

    unread: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


def leave_out(document: Document, changes: list[Override], kept: Collection[str], faults: Faults) -> LeftOut:
    """Takes the stages of these overrides out of the document, unless another needs one. `kept`: those without which
    a round is none."""
    stages: dict[str, Any] = document.data["stages"]
    left_out = {change.head for change in changes}
    needs = _needs(document, left_out)
    for name in left_out.intersection(kept):
        needs.setdefault(name, []).append("the rounds")
    for change in changes:
        if change.head in needs:
            message = f"`{change.head}` cannot be left out: it is needed by {listed(dict.fromkeys(needs[change.head]))}"
            faults.add(f"--set {change.text}", message, field=dotted(("stages", change.head)))
    if needs:
        return LeftOut()
    before = _inputs(stages)
    for name in left_out:
        del stages[name]
    notes = []
    for name, fields in stages.items():
        dropped = _drop_entrants(document, name, fields, left_out)
        if dropped:
            notes.append(f"{name} is without the entrants of stages that are left out: {', '.join(dropped)}")
    return LeftOut(before - _inputs(stages), notes)


def _needs(document: Document, left_out: set[str]) -> dict[str, list[str]]:
    """By stage, where another cannot do without it. An entrant is no need, while others are left."""
    found: dict[str, list[str]] = {}
    for other, fields in document.data["stages"].items():
        if other in left_out or not isinstance(fields, dict):
            continue
        document.budget.check()
        others_compete = any(one not in left_out for one in _entrants(fields))
        for at in _references(fields):
            name = str(value_at(fields, at)).partition(".")[0]
            if name in left_out and not (_is_entrant(fields, at) and others_compete):
                found.setdefault(name, []).append(dotted(("stages", other, *at)))
    for field_name, name in _swept(document):
        if name in left_out:
            found.setdefault(name, []).append(field_name)
    return found


def _references(fields: Mapping[str, Any]) -> Iterator[Path]:
    yield from references(fields)
    for i, entrant in enumerate(fields.get(_ENTRANTS) or () if evaluates(fields.get("run")) else ()):
        if isinstance(entrant, dict) and isinstance(entrant.get("reward"), str):
            yield _ENTRANTS, i, "reward"


def _is_entrant(fields: Mapping[str, Any], at: Path) -> bool:
    return evaluates(fields.get("run")) and at[0] == _ENTRANTS and at[-1] != "reward"


def _entrants(fields: Mapping[str, Any]) -> Iterator[str]:
    for at in references(fields):
        if _is_entrant(fields, at):
            yield str(value_at(fields, at)).partition(".")[0]


def _drop_entrants(document: Document, name: str, fields: Any, left_out: set[str]) -> list[str]:
    """The names of those that were there."""
    if not isinstance(fields, dict) or not evaluates(fields.get("run")):
        return []
    gone = [at for at in references(fields) if _is_entrant(fields, at)]
    gone = [at for at in gone if str(value_at(fields, at)).partition(".")[0] in left_out]
    names = [str(value_at(fields, at)) for at in gone]
    for at in reversed(gone):
        document.remove_item(("stages", name, _ENTRANTS), int(at[1]))
    return list(dict.fromkeys(names))


def _swept(document: Document) -> Iterator[tuple[str, str]]:
    """What of the sweep names which stage."""
    sweep = document.data.get("sweep")
    if isinstance(sweep, dict):
        vary = sweep.get("vary")
        for swept in vary if isinstance(vary, dict) else ():
            yield f"sweep.vary.{swept}", swept.partition(".")[0]
        yield "sweep.metric", str(sweep.get("metric")).partition(".")[0]


def _inputs(stages: Mapping[str, Any]) -> set[str]:
    """The inputs that stages name."""
    named = [
        str(value_at(fields, at))
        for fields in stages.values()
        if isinstance(fields, dict)
        for at in _references(fields)
    ]
    return {name.removeprefix("$") for name in named if name.startswith("$")}
