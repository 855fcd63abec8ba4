"""`--set STAGE=null`: a stage that a start leaves out. What an evaluation would only have compared leaves with it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from steerboard.recipes.errors import Faults
from steerboard.recipes.overrides import Override
from steerboard.recipes.places import Node, Path, dotted
from steerboard.recipes.recipe import Recipe, Stage, stage_of
from steerboard_contracts.wording import listed

_ENTRANTS = "entrants"


@dataclass(frozen=True)
class LeftOut:
    """`unread`: the inputs that nothing reads any more."""

    unread: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


def leave_out(recipe: Recipe, changes: list[Override], kept: Collection[str], faults: Faults) -> tuple[Recipe, LeftOut]:
    """The recipe without the stages of these overrides, unless another needs one. `kept`: the stages without which a
    round is none."""
    left_out = {change.head for change in changes}
    needs = _needs(recipe, left_out)
    for name in left_out.intersection(kept):
        needs.setdefault(name, []).append("the rounds")
    for change in changes:
        if change.head in needs:
            message = f"`{change.head}` cannot be left out: it is needed by {listed(dict.fromkeys(needs[change.head]))}"
            faults.add(f"--set {change.text}", message, field=dotted(("stages", change.head)))
    if needs:
        return recipe, LeftOut()
    before, stages, notes = _inputs(recipe), [], []
    for name, stage in recipe.stages.items():
        if name in left_out:
            continue
        gone = {at: entrant for at, entrant in _entrants(stage) if stage_of(entrant) in left_out}
        stages.append(_without(stage, {int(at[1]) for at in gone}) if gone else stage)
        if gone:
            dropped = ", ".join(dict.fromkeys(gone.values()))
            notes.append(f"{name} is without the entrants of stages that are left out: {dropped}")
    recipe = recipe.with_stages(stages)
    return recipe, LeftOut(before - _inputs(recipe), notes)


def _needs(recipe: Recipe, left_out: set[str]) -> dict[str, list[str]]:
    """The stages that others cannot do without, by stage. An entrant is no need, while others are left."""
    needs: dict[str, list[str]] = {}
    for stage in recipe.stages.values():
        if stage.name in left_out:
            continue
        recipe.budget.check()
        entrants = dict(_entrants(stage))
        others_compete = any(stage_of(entrant) not in left_out for entrant in entrants.values())
        for at, reference in _references(stage):
            if stage_of(reference) in left_out and not (at in entrants and others_compete):
                needs.setdefault(stage_of(reference), []).append(dotted((*stage.path, *at)))
    for field_name, name in _swept(recipe):
        if name in left_out:
            needs.setdefault(name, []).append(field_name)
    return needs


def _references(stage: Stage) -> Iterator[tuple[Path, str]]:
    yield from stage.references.items()
    entrants = stage.fields.get(_ENTRANTS) if stage.evaluates else None
    for i, entrant in enumerate(entrants if isinstance(entrants, list) else ()):
        if isinstance(entrant, dict) and isinstance(entrant.get("reward"), str):
            yield (_ENTRANTS, i, "reward"), entrant["reward"]


def _entrants(stage: Stage) -> Iterator[tuple[Path, str]]:
    """The places where an evaluation names a stage as an entrant."""
    for at, reference in stage.references.items() if stage.evaluates else ():
        if at[0] == _ENTRANTS and len(at) > 1:
            yield at, reference


def _without(stage: Stage, entrants: set[int]) -> Stage:
    given = stage.node.at(_ENTRANTS)
    left = [item for i, item in enumerate(given.items) if i not in entrants]
    return replace(stage, node=stage.node.put((_ENTRANTS,), Node.sequence(left, given.place)))


def _swept(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """What of the sweep names which stage."""
    sweep = recipe.sections.get("sweep")
    if isinstance(sweep, dict):
        vary = sweep.get("vary")
        for swept in vary if isinstance(vary, dict) else ():
            yield f"sweep.vary.{swept}", stage_of(swept)
        yield "sweep.metric", stage_of(str(sweep.get("metric")))


def _inputs(recipe: Recipe) -> set[str]:
    """The inputs that stages name."""
    named = [reference for stage in recipe.stages.values() for _, reference in _references(stage)]
    return {name.removeprefix("$") for name in named if name.startswith("$")}
