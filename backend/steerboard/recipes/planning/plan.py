"""From a recipe's text to a plan: every stage with its resolved config and inputs, in an order that works.

Nothing here writes anything; service.py turns a plan into runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from steerboard.recipes.budget import Budget
from steerboard.recipes.document import Document, parse
from steerboard.recipes.draft import Draft, read_stages
from steerboard.recipes.errors import Faults
from steerboard.recipes.inputs import NAME, NAME_RULE, StageRef, Value, declarations, resolve
from steerboard.recipes.limits import MAX_STAGES, refuse_large, refuse_many, size_of
from steerboard.recipes.overrides import Override, apply_to_stage, parse_overrides, unknown_target
from steerboard.recipes.places import Path
from steerboard.recipes.planning.graph import cycles, ordered
from steerboard.recipes.planning.implied import Implied
from steerboard.recipes.planning.left_out import LeftOut, leave_out
from steerboard.recipes.planning.rounds import ROUND, unroll, without_stages
from steerboard.recipes.planning.stop_rule import ROUNDS, await_checks, check_judge, judge_by_comparing
from steerboard.recipes.planning.sweep.block import SWEEP, set_sweep
from steerboard.recipes.planning.sweep.halving import await_rungs
from steerboard.recipes.planning.sweep.variants import summary_of, variant_of, write_variants
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

    document: Document
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
    data = reading.document.data
    return Plan(
        name=data["name"],
        description=str(data.get("description") or ""),
        text=text,
        overrides=overrides,
        recipe=data,
        stages=stages,
        notes=reading.notes,
        sweep=reading.sweep,
        rounds=reading.rounds,
        copy_of={name: str(reading.document.written(("stages", name))[-1]) for name in reading.document.copies},
    )


def read_recipe(text: str, overrides: list[str], catalogue: Catalogue, budget: Budget | None = None) -> Reading:
    """Collects faults instead of raising them. Raises `InvalidRecipe` only where there is no stage to read (broken
    YAML, or no `stages`), and for what is too large or takes too long."""
    document = parse(text, budget)
    faults = Faults()
    _check_top(document, faults)
    if not isinstance(document.data.get("stages"), dict):
        faults.raise_if_any()
    check_size(document)
    declared = declarations(document, faults)
    changes, rounds = unroll(document, parse_overrides(overrides, faults, document.budget), faults)
    changes = set_sweep(document, changes)
    kept = [name for one in (rounds.rounds if rounds else ()) for name in (one.policy, one.check) if name]
    set_values, later, left_out = _apply(document, list(declared), changes, kept, faults)
    if rounds is not None:
        rounds = without_stages(rounds, document.data["stages"])
    check_size(document)
    sweep = write_variants(document, faults)
    values = resolve(document, declared, set_values, catalogue, faults, left_out.unread)
    judge_by_comparing(document, values)
    implied = Implied(document, declared, values, catalogue, faults)
    implied.add_all()
    _apply_later(document, list(declared), implied.stages, later, sweep, faults)

    drafts = read_stages(document, faults)
    sources = Sources(document, drafts, values, catalogue, faults)
    inputs = {name: sources.of(draft) for name, draft in drafts.items()}
    if rounds is not None:
        rounds = _with_start(rounds, values)
        check_judge(document, rounds, drafts, inputs, faults)
        await_checks(rounds, inputs)
    if sweep is not None and sweep.halving is not None:
        await_rungs(sweep.halving, inputs)
    order = _order(document, drafts, inputs, faults)
    notes = [*left_out.notes, *implied.notes, *([summary_of(sweep)] if sweep else [])]
    return Reading(document, drafts, inputs, order, implied.stages, notes, faults, sweep, rounds)


def _with_start(rounds: PlannedRounds, values: Mapping[str, Value]) -> PlannedRounds:
    """With the stage or the model that an input as their start means."""
    start = values.get(rounds.start.removeprefix("$")) if rounds.start.startswith("$") else None
    if isinstance(start, StageRef):
        return rounds.model_copy(update={"start": start.stage})
    if isinstance(start, KnownModel):
        return rounds.model_copy(update={"start": start.name, "start_model": start.id})
    return rounds


def _check_top(document: Document, faults: Faults) -> None:
    data = document.data
    for key in data:
        if key not in TOP_KEYS:
            document.fault(faults, (key,), f"unknown key `{key}`" + did_you_mean(key, TOP_KEYS))
    name = data.get("name")
    if name is None:
        document.fault(faults, (), "needs a `name`")
    elif not (isinstance(name, str) and NAME.match(name)):
        document.fault(faults, ("name",), f"{NAME_RULE}; got {name!r}")
    if not isinstance(data.get("description", ""), str):
        document.fault(faults, ("description",), "must be text")
    stages = data.get("stages")
    if not isinstance(stages, dict) or not stages:
        document.fault(faults, ("stages",) if "stages" in data else (), "needs `stages`: a mapping of names to stages")
        data["stages"] = None


def check_size(document: Document) -> None:
    """Also of what overrides have set."""
    stages = document.data["stages"]
    refuse_many(document.location(("stages",)), "stages", len(stages), MAX_STAGES)
    refuse_large(document.location(("stages",)), size_of(stages))


def _apply(
    document: Document, declared: list[str], changes: list[Override], kept: list[str], faults: Faults
) -> tuple[dict[str, str | None], list[Override], LeftOut]:
    """Overrides of inputs and of written stages. Those that name neither wait for the implied stages. `kept` as for
    `leave_out`."""
    set_values: dict[str, str | None] = {}
    later: list[Override] = []
    without: list[Override] = []
    stages = document.data["stages"]
    for change in changes:
        if len(change.path) == 1 and change.head in declared:
            set_values[change.head] = None if change.value is None else change.raw
            document.places[("inputs", change.head)] = change.place
        elif len(change.path) > 1 and isinstance(stages.get(change.head), dict):
            apply_to_stage(document, change, faults)
        elif len(change.path) == 1 and change.head == "name":
            document.put(("name",), change.value, change.place)
        elif len(change.path) == 1 and change.head in stages and change.value is None:
            without.append(change)
        elif len(change.path) == 1 and change.head in stages:
            message = f"`{change.head}` is a stage: set one of its fields, {change.head}.FIELD, or null"
            faults.add(f"--set {change.text}", message, field=change.field)
        else:
            later.append(change)
    if isinstance(document.data.get("name"), str) and not NAME.match(document.data["name"]):
        document.fault(faults, ("name",), NAME_RULE)
    return set_values, later, leave_out(document, without, kept, faults) if without else LeftOut()


def _apply_later(
    document: Document,
    declared: list[str],
    implied: list[str],
    later: list[Override],
    sweep: PlannedSweep | None,
    faults: Faults,
) -> None:
    written = [str(document.written(("stages", name))[-1]) for name in document.data["stages"]]
    known = [*declared, *written, *(key for key in (SWEEP, ROUNDS, "name") if key in document.data)]
    for change in later:
        if change.head in implied and len(change.path) > 1:
            apply_to_stage(document, change, faults)
        elif change.head in implied and change.value is None:
            message = f"`{change.head}` is implied by the stages that need it: change those"
            faults.add(f"--set {change.text}", message, field=change.field)
        else:
            message = variant_of(sweep, change) or unknown_target(change, known)
            faults.add(f"--set {change.text}", message, field=change.field)


def _order(
    document: Document, drafts: Mapping[str, Draft], inputs: Mapping[str, Mapping[str, Source]], faults: Faults
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
        document.fault(faults, path, f"the stages wait for each other: {' -> '.join(loop)}")
    return ordered(needs)
