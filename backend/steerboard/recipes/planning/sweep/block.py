"""The `sweep` of a recipe, read and checked: what varies, over which values, and the figure that decides.

    sweep:
      vary:
        tuned.beta: [0.01, 0.05, 0.1]           # a list
        tuned.lr: {min: 1.0e-7, max: 1.0e-6}    # or, of a random search, a range
      search: random                            # grid (every combination) by default
      variants: 8                               # of a random search: how many are drawn
      seed: 0
      halving: {rungs: [50, 100, 200]}          # optional: halving.py
      metric: report                            # an evaluation, an evaluation.judge, or a training stage.figure

variants.py writes the stages of each variant.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from steerboard.recipes.errors import Faults
from steerboard.recipes.limits import MAX_DEPTH
from steerboard.recipes.overrides import Override
from steerboard.recipes.places import Node, Path
from steerboard.recipes.planning.rounds import ROUND
from steerboard.recipes.planning.stop_rule import ROUNDS
from steerboard.recipes.planning.sweep.halving import HalvingBlock
from steerboard.recipes.recipe import Recipe
from steerboard.runs.kinds import STAGE_OPTIONS
from steerboard_contracts.complaints import did_you_mean
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.recipes.sweep import SweepGoal, SweepSearch

SWEEP = "sweep"
MOST_VARIANTS = 64
_MOST_FIELDS = 32
_MOST_VALUES = 1000
# Draws of a random search are rounded to this many digits, so that a value can be read, and written by hand.
_DIGITS = 3
_TRIES = 1000

Number = Annotated[int, Field(strict=True)] | Annotated[float, Field(strict=True, allow_inf_nan=False)]


class SweepBlock(BaseModel):
    """What is under `sweep`. `entrant`: whose figure decides, where an evaluation has several that vary; `score`: what
    it is asked for, where it is asked for several."""

    model_config = ConfigDict(extra="forbid")

    vary: dict[str, Any]
    metric: str
    search: SweepSearch = "grid"
    variants: Annotated[int, Field(ge=2, le=MOST_VARIANTS)] | None = None
    seed: Annotated[int, Field(ge=0)] = 0
    goal: SweepGoal | None = None
    entrant: str | None = None
    score: Condition | None = None
    halving: HalvingBlock | None = None


class Range(BaseModel):
    """Values from `min` to `max`, both included, evenly on the scale; whole numbers where both ends are."""

    model_config = ConfigDict(extra="forbid")

    min: Number
    max: Number
    scale: Literal["linear", "log"] = "linear"

    @model_validator(mode="after")
    def _has_width(self) -> Self:
        if not self.min < self.max:
            raise ValueError(f"`min` must be below `max`, got {self.min:g} and {self.max:g}")
        if self.scale == "log" and self.min <= 0:
            raise ValueError(f"a log scale must start above 0, got {self.min:g}")
        return self

    def draw(self, source: random.Random) -> int | float:
        whole = isinstance(self.min, int) and isinstance(self.max, int)
        if self.scale == "log":
            drawn = math.exp(source.uniform(math.log(self.min), math.log(self.max)))
        elif whole:
            return source.randint(int(self.min), int(self.max))
        else:
            drawn = source.uniform(self.min, self.max)
        drawn = min(max(float(f"{drawn:.{_DIGITS}g}"), self.min), self.max)
        return round(drawn) if whole else drawn


@dataclass(frozen=True)
class Sweep:
    """`choices[variant][field]`."""

    block: SweepBlock
    choices: list[dict[str, Node]]


def set_sweep(recipe: Recipe, changes: Sequence[Override]) -> tuple[Recipe, list[Override]]:
    """Applies overrides of the sweep itself, such as `sweep.variants=4`, `sweep.vary.tuned.beta=[0.1, 0.5]`, or
    `sweep=null` for a start without one. Gives the others."""
    left = []
    for change in changes:
        sweep, path = recipe.sections.get(SWEEP), change.path
        if change.head != SWEEP or SWEEP not in recipe.sections:
            left.append(change)
        elif len(path) == 1 and change.value is None:
            recipe = replace(recipe, file=recipe.file.without(SWEEP))
        elif len(path) == 1 or not isinstance(sweep, dict):
            left.append(change)
        elif len(path) == 2 or (len(path) == 3 and path[1] == "halving" and isinstance(sweep.get("halving"), dict)):
            recipe = recipe.put(path, change.value, change.place)
        elif path[1] == "vary" and isinstance(sweep.get("vary"), dict):
            recipe = recipe.put((*path[:2], ".".join(path[2:])), change.value, change.place)
        else:
            left.append(change)
    return recipe, left


def read_sweep(recipe: Recipe, faults: Faults) -> Sweep | None:
    """Returns None where there is no sweep, or where it has faults."""
    if SWEEP not in recipe.sections:
        return None
    raw = recipe.sections[SWEEP]
    if ROUND in recipe.sections or ROUNDS in recipe.sections:
        recipe.fault(faults, (SWEEP,), "a recipe with rounds takes no sweep; write the one recipe or the other")
        return None
    if not isinstance(raw, dict):
        recipe.fault(faults, (SWEEP,), "must be a mapping with `vary` and `metric`")
        return None
    try:
        block = SweepBlock.model_validate(raw, strict=True)
    except ValidationError as error:
        recipe.invalid(faults, (SWEEP,), error, SweepBlock)
        return None
    fields = _fields(recipe, block, faults)
    if fields is None:
        return None
    search = _grid if block.search == "grid" else _drawn
    choices = search(recipe, block, fields, faults)
    return None if choices is None else Sweep(block, choices)


Fields = Mapping[str, list[Node] | Range]


def _fields(recipe: Recipe, block: SweepBlock, faults: Faults) -> Fields | None:
    """The values of every swept field. None where one has a fault."""
    if not block.vary:
        recipe.fault(faults, (SWEEP, "vary"), "names no field: write `STAGE.FIELD: [one value, another]`")
        return None
    if len(block.vary) > _MOST_FIELDS:
        recipe.fault(faults, (SWEEP, "vary"), f"names {len(block.vary):,} fields; the limit is {_MOST_FIELDS}")
        return None
    fields: dict[str, list[Node] | Range] = {}
    for name, values in block.vary.items():
        at = (SWEEP, "vary", name)
        wrong = _unknown(recipe, name)
        if wrong:
            recipe.fault(faults, at, wrong)
            continue
        read = _range(recipe, at, values, faults) if isinstance(values, dict) else _list(recipe, at, values, faults)
        if read is not None:
            fields[name] = read
    return fields if len(fields) == len(block.vary) else None


def _unknown(recipe: Recipe, name: str) -> str | None:
    """Why this is not a field that can vary."""
    stage, dot, field = name.partition(".")
    if not dot or not all(field.split(".")):
        return "must be a stage and its field: `STAGE.FIELD`"
    if stage not in recipe.stages:
        return f"unknown stage `{stage}`" + did_you_mean(stage, recipe.stages)
    kind = recipe.stages[stage].kind
    if kind is None:
        return f"the stage `{stage}` cannot be read"
    if kind.run == "evaluate":
        return f"`{stage}` compares the variants, so it must be the same for all of them"
    first, *inner = field.split(".")
    if len(inner) > MAX_DEPTH:
        return f"is nested more than {MAX_DEPTH} deep"
    if first in ("run", "method", *STAGE_OPTIONS):
        return f"`{first}` cannot vary; give each its own stage, and name them all in one evaluation"
    known = [name for name in (*kind.config.model_fields, *kind.slots) if name not in ("run", "method")]
    if first not in known:
        return f"the stage `{stage}` ({kind.word}) has no field `{first}`" + did_you_mean(first, known)
    return _no_way(recipe.stages[stage].fields.get(first), first, inner)


def _no_way(value: Any, name: str, parts: list[str]) -> str | None:
    """Why nothing can be set at `parts` below a field. A mapping that is not there yet is made."""
    for part in parts:
        if isinstance(value, list):
            if not part.isdigit() or int(part) >= len(value):
                return f"`{part}` is not an item of the list `{name}`; it has {len(value)}, counted from 0"
            value = value[int(part)]
            if not isinstance(value, dict) and part != parts[-1]:
                return f"item {part} of `{name}` is written in short; write it as a mapping"
        else:
            value = value.get(part) if isinstance(value, dict) else None
        name = f"{name}.{part}"
    return None


def _list(recipe: Recipe, at: Path, values: Any, faults: Faults) -> list[Node] | None:
    if not isinstance(values, list) or not values:
        got = "an empty list" if values == [] else repr(values)
        recipe.fault(faults, at, f"needs a list of values, or {{min: ..., max: ...}} of a random search; got {got}")
        return None
    if len(values) > _MOST_VALUES:
        recipe.fault(faults, at, f"has {len(values):,} values; the limit is {_MOST_VALUES:,}")
        return None
    for i, value in enumerate(values):
        recipe.budget.check()
        first = values.index(value)
        if first != i and type(values[first]) is type(value):
            recipe.fault(faults, (*at, i), f"{value!r} is in the list twice")
            return None
    return recipe.file.at(*at).items


def _range(recipe: Recipe, at: Path, values: dict[str, Any], faults: Faults) -> Range | None:
    try:
        range_ = Range.model_validate(values)
    except ValidationError as error:
        recipe.invalid(faults, at, error, Range)
        return None
    if recipe.sections[SWEEP].get("search", "grid") == "grid":
        recipe.fault(faults, at, "a grid needs a list of values; a range is drawn from with `search: random`")
        return None
    return range_


def _grid(recipe: Recipe, block: SweepBlock, fields: Fields, faults: Faults) -> list[dict[str, Node]] | None:
    if block.variants is not None:
        message = "a grid takes every combination; `variants` belongs to `search: random`"
        recipe.fault(faults, (SWEEP, "variants"), message)
        return None
    lists = [values for values in fields.values() if isinstance(values, list)]
    number = math.prod(len(values) for values in lists)
    if number < 2:
        recipe.fault(faults, (SWEEP, "vary"), "makes one variant; give two values or more")
        return None
    if number > MOST_VARIANTS:
        message = f"makes {number:,} variants; the limit is {MOST_VARIANTS}: draw some of them with `search: random`"
        recipe.fault(faults, (SWEEP, "vary"), message)
        return None
    return [dict(zip(fields, row, strict=True)) for row in itertools.product(*lists)]


def _drawn(recipe: Recipe, block: SweepBlock, fields: Fields, faults: Faults) -> list[dict[str, Node]] | None:
    """Distinct draws. Each field has its own stream of numbers, so that the values of one field stay where another one
    is added; the first variants stay where more are asked for."""
    if block.variants is None:
        message = f"needs `variants`: how many a random search draws, at most {MOST_VARIANTS}"
        recipe.fault(faults, (SWEEP,), message)
        return None
    streams = {name: random.Random(f"{block.seed}:{name}") for name in fields}
    rows: list[dict[str, Node]] = []
    seen: set[str] = set()
    for _ in range(_TRIES):
        recipe.budget.check()
        row = {}
        for name, values in fields.items():
            if isinstance(values, list):
                row[name] = streams[name].choice(values)
            else:
                row[name] = Node(values.draw(streams[name]), recipe.place((SWEEP, "vary", name)))
        identity = repr([choice.value for choice in row.values()])
        if identity not in seen:
            seen.add(identity)
            rows.append(row)
        if len(rows) == block.variants:
            return rows
    message = f"{block.variants} different variants are asked for, and only {len(rows)} were found among the values"
    recipe.fault(faults, (SWEEP, "variants"), message)
    return None
