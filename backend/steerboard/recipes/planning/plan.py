"""The way from a recipe's text to a plan: every stage with its resolved config and inputs, in an order that works.

Nothing here writes anything; service.py turns a plan into runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from steerboard.recipes.draft import Draft, read_stages
from steerboard.recipes.errors import Faults
from steerboard.recipes.inputs import NAME, NAME_RULE, StageRef, Value, declarations, resolve
from steerboard.recipes.limits import Budget
from steerboard.recipes.overrides import Override, apply_to_stage, parse_overrides, unknown_target
from steerboard.recipes.places import Path
from steerboard.recipes.planning.graph import cycles, ordered
from steerboard.recipes.planning.implied import fill_implied
from steerboard.recipes.planning.left_out import LeftOut, leave_out
from steerboard.recipes.planning.rounds import ROUND, expand_rounds, without_stages
from steerboard.recipes.planning.stop_rule import ROUNDS, await_checks, check_judge, judge_by_comparing
from steerboard.recipes.planning.sweep.block import SWEEP, set_sweep
from steerboard.recipes.planning.sweep.halving import await_rungs
from steerboard.recipes.planning.sweep.variants import expand_sweep, summary_of, variant_of
from steerboard.recipes.recipe import Recipe
from steerboard.recipes.sources import Source, Sources
from steerboard.runs.launch.lookup import Catalogue, KnownModel
from steerboard_contracts.complaints import did_you_mean
from steerboard_contracts.recipes.rounds import PlannedRounds
from steerboard_contracts.recipes.sweep import PlannedSweep
from steerboard_contracts.run_config import RunConfig

TOP_KEYS = ("name", "description", "inputs", "stages", ROUNDS, ROUND, SWEEP)


@dataclass(frozen=True)
class PlannedStage:
    """`inputs` by input name (`model`, `parts.0`, ...). `implied`: the recipe does not spell it out."""

    name: str
    config: RunConfig
    inputs: dict[str, Source]
    pool: str
    reuse: bool
    implied: bool

    @property
    def needs(self) -> list[str]:
        return list(dict.fromkeys(s.stage for s in self.inputs.values() if isinstance(s, StageRef)))


@dataclass(frozen=True)
class Plan:
    """What a start would do. `recipe` is the recipe as data, overrides and implied stages included."""

    name: str
    description: str
    text: str
    overrides: list[str]
    recipe: dict[str, Any]
    stages: list[PlannedStage]
    notes: list[str] = field(default_factory=list)
    sweep: PlannedSweep | None = None
    rounds: PlannedRounds | None = None
    copy_of: dict[str, str] = field(default_factory=dict)
    """By stage that was written several times, as in each round, how the file calls it."""


@dataclass(frozen=True)
class Reading:
    """A recipe as far as it can be read, with everything that is wrong with it. `order` names the stages that can be
    shown; `implied` those that the recipe does not spell out."""

    recipe: Recipe
    drafts: dict[str, Draft]
    inputs: dict[str, dict[str, Source]]
    order: list[str]
    implied: list[str]
    notes: list[str]
    faults: Faults
    sweep: PlannedSweep | None = None
    rounds: PlannedRounds | None = None


def make_plan(text: str, overrides: list[str], catalogue: Catalogue, budget: Budget | None = None) -> Plan:
    """Raises `InvalidRecipe` with every fault, each with its line. Starts nothing."""
    reading = read_recipe(text, overrides, catalogue, budget)
    reading.faults.raise_if_any()
    stages = []
    for name in reading.order:
        draft = reading.drafts[name]
        assert draft.config is not None
        stages.append(
            PlannedStage(name, draft.config, reading.inputs[name], draft.pool, draft.reuse, name in reading.implied)
        )
    recipe = reading.recipe
    return Plan(
        name=recipe.sections["name"],
        description=str(recipe.sections.get("description") or ""),
        text=text,
        overrides=overrides,
        recipe=recipe.data,
        stages=stages,
        notes=reading.notes,
        sweep=reading.sweep,
        rounds=reading.rounds,
        copy_of={stage.name: str(stage.origin[-1]) for stage in recipe.stages.values() if stage.origin != stage.path},
    )


def read_recipe(text: str, overrides: list[str], catalogue: Catalogue, budget: Budget | None = None) -> Reading:
    """Collects faults instead of raising them. Raises `InvalidRecipe` only where there is no stage to read (broken
    YAML, or no `stages`), and for what is too large or takes too long."""
    recipe, faults = Recipe.read(text, budget), Faults()
    _check_top(recipe, faults)
    if not recipe.stages:
        faults.raise_if_any()
    recipe.check_size()
    declared = declarations(recipe, faults)
    changes = parse_overrides(overrides, faults, recipe.budget)
    recipe, changes, rounds = expand_rounds(recipe, changes, faults)
    recipe, changes = set_sweep(recipe, changes)
    kept = [name for round_ in (rounds.rounds if rounds else ()) for name in (round_.policy, round_.check) if name]
    recipe, set_values, later, left_out = _apply(recipe, list(declared), changes, kept, faults)
    if rounds is not None:
        rounds = without_stages(rounds, recipe.stages)
    recipe.check_size()
    recipe, sweep = expand_sweep(recipe, faults)
    values = resolve(recipe, declared, set_values, catalogue, faults, left_out.unread)
    filled = fill_implied(judge_by_comparing(recipe, values), declared, values, catalogue, faults)
    recipe = _apply_later(filled.recipe, list(declared), filled.stages, later, sweep, faults)

    drafts = read_stages(recipe, faults)
    sources = Sources(recipe, drafts, filled.values, catalogue, faults)
    inputs = {name: sources.of(draft) for name, draft in drafts.items()}
    if rounds is not None:
        rounds = _with_start(rounds, filled.values)
        check_judge(recipe, rounds, drafts, inputs, faults)
        inputs = await_checks(rounds, inputs)
    if sweep is not None and sweep.halving is not None:
        inputs = await_rungs(sweep.halving, inputs)
    order = _order(recipe, drafts, inputs, faults)
    notes = [*left_out.notes, *filled.notes, *([summary_of(sweep)] if sweep else [])]
    return Reading(recipe, drafts, inputs, order, filled.stages, notes, faults, sweep, rounds)


def _with_start(rounds: PlannedRounds, values: Mapping[str, Value]) -> PlannedRounds:
    """The rounds with the stage or the model that an input as their start means."""
    start = values.get(rounds.start.removeprefix("$")) if rounds.start.startswith("$") else None
    if isinstance(start, StageRef):
        return rounds.model_copy(update={"start": start.stage})
    if isinstance(start, KnownModel):
        return rounds.model_copy(update={"start": start.name, "start_model": start.id})
    return rounds


def _check_top(recipe: Recipe, faults: Faults) -> None:
    data = recipe.sections
    for key in data:
        if key not in TOP_KEYS:
            recipe.fault(faults, (key,), f"unknown key `{key}`" + did_you_mean(key, TOP_KEYS))
    name = data.get("name")
    if name is None:
        recipe.fault(faults, (), "needs a `name`")
    elif not (isinstance(name, str) and NAME.match(name)):
        recipe.fault(faults, ("name",), f"{NAME_RULE}; got {name!r}")
    if not isinstance(data.get("description", ""), str):
        recipe.fault(faults, ("description",), "must be text")
    if not recipe.stages:
        recipe.fault(faults, ("stages",) if "stages" in data else (), "needs `stages`: a mapping of names to stages")


def _apply(
    recipe: Recipe, declared: list[str], changes: list[Override], kept: list[str], faults: Faults
) -> tuple[Recipe, dict[str, str | None], list[Override], LeftOut]:
    """Overrides of inputs and of written stages. Those that name neither wait for the implied stages. `kept` as for
    `leave_out`."""
    set_values: dict[str, str | None] = {}
    later: list[Override] = []
    without: list[Override] = []
    for change in changes:
        stage = recipe.stages.get(change.head)
        if len(change.path) == 1 and change.head in declared:
            set_values[change.head] = None if change.value is None else change.raw
            at: Path = ("inputs", change.head)
            set_here = replace(recipe.file.at(*at), place=change.place)
            recipe = replace(recipe, file=recipe.file.put(at, set_here))
        elif len(change.path) > 1 and stage is not None and isinstance(stage.node.value, dict):
            recipe = recipe.with_stage(apply_to_stage(stage, change, faults))
        elif len(change.path) == 1 and change.head == "name":
            recipe = recipe.put(("name",), change.value, change.place)
        elif len(change.path) == 1 and stage is not None and change.value is None:
            without.append(change)
        elif len(change.path) == 1 and stage is not None:
            message = f"`{change.head}` is a stage: set one of its fields, {change.head}.FIELD, or null"
            faults.add(f"--set {change.text}", message, field=change.field)
        else:
            later.append(change)
    name = recipe.sections.get("name")
    if isinstance(name, str) and not NAME.match(name):
        recipe.fault(faults, ("name",), NAME_RULE)
    recipe, left_out = leave_out(recipe, without, kept, faults) if without else (recipe, LeftOut())
    return recipe, set_values, later, left_out


def _apply_later(
    recipe: Recipe,
    declared: list[str],
    implied: list[str],
    later: list[Override],
    sweep: PlannedSweep | None,
    faults: Faults,
) -> Recipe:
    written = [str(stage.origin[-1]) for stage in recipe.stages.values()]
    known = [*declared, *written, *(key for key in (SWEEP, ROUNDS, "name") if key in recipe.sections)]
    for change in later:
        if change.head in implied and len(change.path) > 1:
            recipe = recipe.with_stage(apply_to_stage(recipe.stages[change.head], change, faults))
        elif change.head in implied and change.value is None:
            message = f"`{change.head}` is implied by the stages that need it: change those"
            faults.add(f"--set {change.text}", message, field=change.field)
        else:
            message = variant_of(sweep, change) or unknown_target(change, known)
            faults.add(f"--set {change.text}", message, field=change.field)
    return recipe


def _order(
    recipe: Recipe, drafts: Mapping[str, Draft], inputs: Mapping[str, Mapping[str, Source]], faults: Faults
) -> list[str]:
    needs = {
        name: list(dict.fromkeys(s.stage for s in inputs[name].values() if isinstance(s, StageRef))) for name in drafts
    }
    for loop in cycles(needs):
        path: Path = next(
            reference.path
            for slot, reference in drafts[loop[0]].references.items()
            if isinstance(source := inputs[loop[0]].get(slot), StageRef) and source.stage == loop[1]
        )
        recipe.fault(faults, path, f"the stages wait for each other: {' -> '.join(loop)}")
    return ordered(needs)
