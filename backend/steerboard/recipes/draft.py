"""The `stages` of a recipe, read but not yet resolved: kind, config and references of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticUndefined, to_jsonable_python

from steerboard.recipes.errors import Faults
from steerboard.recipes.inputs import NAME, NAME_RULE
from steerboard.recipes.limits import MAX_REFERENCES, refuse_many
from steerboard.recipes.places import Path
from steerboard.recipes.recipe import Recipe, Stage
from steerboard.runs.kinds import STAGE_OPTIONS
from steerboard_contracts.complaints import did_you_mean
from steerboard_contracts.methods import methods
from steerboard_contracts.run_config import RUN_CONFIG, RunConfig
from steerboard_contracts.run_kinds import run_words
from steerboard_contracts.specs.run_kind import RunKindSpec


@dataclass(frozen=True)
class Reference:
    """`$name` (an input) or a bare name (a stage), and where it is written. `output`: of `stage.role`, the role."""

    name: str
    to_input: bool
    path: Path
    output: str | None = None

    @property
    def text(self) -> str:
        name = f"{self.name}.{self.output}" if self.output else self.name
        return f"${name}" if self.to_input else name


@dataclass(frozen=True)
class Draft:
    """One stage. `config`: None where it has a fault. `written`: the config's fields as written in the recipe, valid or
    not. `references` are keyed by input name: `data`, `parts.0`, `entrants.2`."""

    name: str
    kind: RunKindSpec
    config: RunConfig | None
    written: Mapping[str, Any]
    references: Mapping[str, Reference]
    pool: str
    reuse: bool

    @property
    def path(self) -> Path:
        return ("stages", self.name)

    def fields(self) -> dict[str, Any]:
        """The config as JSON. Of a stage at fault: what is written, and the defaults of what is not."""
        if self.config is not None:
            return self.config.model_dump(mode="json")
        values = {}
        for name, info in self.kind.config.model_fields.items():
            default = info.get_default(call_default_factory=True, validated_data={})
            value = self.written.get(name, None if default is PydanticUndefined else default)
            values[name] = to_jsonable_python(value, inf_nan_mode="strings")
        return values


# Slots whose items have fields of their own: which of them is the reference, and to what.
_ITEMS = {"parts": ("data", "the dataset of this part"), "entrants": ("model", "the model that answers")}


def read_stages(recipe: Recipe, faults: Faults) -> dict[str, Draft]:
    """Check every stage's keys, values and references' form. Stages at fault are left out or have no config."""
    drafts: dict[str, Draft] = {}
    for name, stage in recipe.stages.items():
        recipe.budget.check()
        if not NAME.match(name):
            recipe.fault(faults, stage.path, f"the name {NAME_RULE}")
        if not isinstance(stage.node.value, dict):
            recipe.fault(faults, stage.path, "must be a mapping with `run` and the stage's fields")
        elif stage.kind is None:
            _refuse_kind(recipe, stage, faults)
        else:
            drafts[name] = _Reader(recipe, stage, stage.kind, faults).read()
    return drafts


def _refuse_kind(recipe: Recipe, stage: Stage, faults: Faults) -> None:
    path, run, method = stage.path, stage.fields.get("run"), stage.fields.get("method")
    if "run" not in stage.fields:
        recipe.fault(faults, path, f"needs `run`: one of {', '.join(run_words())}")
    elif run not in run_words():
        recipe.fault(faults, (*path, "run"), f"unknown run kind `{run}`" + did_you_mean(str(run), run_words()))
    elif "method" not in stage.fields:
        recipe.fault(faults, path, f"needs `method`: one of {', '.join(methods())}")
    else:
        message = f"unknown method `{method}`" + did_you_mean(str(method), methods())
        recipe.fault(faults, (*path, "method"), message)


class _Reader:
    """Reads one stage, whose kind is known."""

    def __init__(self, recipe: Recipe, stage: Stage, kind: RunKindSpec, faults: Faults) -> None:
        self._recipe = recipe
        self._stage = stage
        self._kind = kind
        self._faults = faults
        self._references: dict[str, Reference] = {}

    def read(self) -> Draft:
        rest = {**self._stage.fields}
        pool, reuse = self._options(rest.pop("pool", "default"), rest.pop("reuse", True))
        for slot, spec in self._kind.slots.items():
            if slot not in rest:
                continue
            if slot in self._kind.config.model_fields and isinstance(rest[slot], dict):
                continue  # a field of the config takes the place of the input: an endpoint that judges
            value = rest.pop(slot)
            if isinstance(value, list):
                refuse_many(self._recipe.location((*self._stage.path, slot)), "items", len(value), MAX_REFERENCES)
            if not spec.many:
                self._refer(slot, value, slot)
            elif slot in _ITEMS:
                rest[slot] = self._items(slot, value) if isinstance(value, list) else value
                if slot == "entrants":
                    self._refuse_n()
            elif slot == "best_of":
                self._fault("belongs to an entrant: `{model: sft, best_of: 8, reward: reward}`", slot)
            elif isinstance(value, list):
                for i, item in enumerate(value):
                    self._refer(f"{slot}.{i}", item, slot, i)
            else:
                self._refer(f"{slot}.0", value, slot)
        return Draft(self._stage.name, self._kind, self._config(rest), rest, self._references, pool, reuse)

    def _options(self, pool: Any, reuse: Any) -> tuple[str, bool]:
        if not (isinstance(pool, str) and NAME.match(pool)):
            self._fault(f"the name of a pool {NAME_RULE}", "pool")
            pool = "default"
        if not isinstance(reuse, bool):
            self._fault(f"must be true or false, got {reuse!r}", "reuse")
            reuse = True
        return pool, reuse

    def _refer(self, name_of_input: str, value: Any, *at: str | int) -> None:
        name, _, output = value.partition(".") if isinstance(value, str) else ("", "", "")
        to_input = name.startswith("$")
        further = not to_input and NAME.match(output)
        if not NAME.match(name.removeprefix("$")) or not (further or "." not in value):
            self._fault(f"must be the name of a stage, or `$` and the name of an input; got {value!r}", *at)
            return
        path = (*self._stage.path, *at)
        self._references[name_of_input] = Reference(name.removeprefix("$"), to_input, path, output or None)

    def _items(self, slot: str, value: list[Any]) -> list[Any]:
        """The items of the config. `parts: [answers, {data: name, share: ..., side: ...}]`, or `entrants: [sft, {model:
        dt, scores: [...]}, {model: sft, best_of: 8, reward: reward}]`; a bare name is an item with defaults."""
        key, what = _ITEMS[slot]
        inputs = (key, "reward") if slot == "entrants" else (key,)
        items = []
        for i, written in enumerate(value):
            item = {key: written} if isinstance(written, str) else written
            if not isinstance(item, dict):
                items.append(item)
                continue
            if key not in item:
                self._fault(f"needs `{key}`: {what}", slot, i)
            else:
                self._refer(f"{slot}.{i}", item[key], slot, i, *(() if isinstance(written, str) else (key,)))
            if slot == "entrants":
                self._best_of(i, item)
            items.append({name: field_value for name, field_value in item.items() if name not in inputs})
        return items

    def _best_of(self, i: int, entrant: Mapping[str, Any]) -> None:
        if "reward" in entrant:
            self._refer(f"best_of.{i}", entrant["reward"], "entrants", i, "reward")
        if ("reward" in entrant) != (entrant.get("best_of") is not None):
            self._fault("needs both `best_of` and the `reward` model that chooses, or neither", "entrants", i)

    def _refuse_n(self) -> None:
        """Refuses `n` in the decoding of an evaluation: each entrant has its own number of answers."""
        decoding = self._stage.fields.get("decoding")
        if isinstance(decoding, dict) and decoding.get("n", 1) != 1:
            message = "has no effect on an evaluation: give an entrant `samples`, or `best_of` and a `reward`"
            self._fault(message, "decoding", "n")

    def _config(self, rest: dict[str, Any]) -> RunConfig | None:
        """The config, by the very class that the server, the stage and the launch forms use. Strict: no "5" for 5."""
        try:
            return RUN_CONFIG.validate_python(self._kind.config.model_validate(rest, strict=True))
        except ValidationError as error:
            more = (*self._kind.slots, *STAGE_OPTIONS)
            self._recipe.invalid(self._faults, self._stage.path, error, self._kind.config, more)
            return None

    def _fault(self, message: str, *at: str | int) -> None:
        self._recipe.fault(self._faults, (*self._stage.path, *at), message)
