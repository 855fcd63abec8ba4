"""The `stages` of a recipe, read but not yet resolved: kind, config and references of each."""

from __future__ import annotations

from dataclasses import dataclass, field
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


@dataclass
class Draft:
    """One stage. `references` are keyed by input name: `data`, `parts.0`, `entrants.2`. `written`: the config's fields
    as written in the recipe, valid or not."""

    name: str
    kind: RunKindSpec
    config: RunConfig | None = None
    written: dict[str, Any] = field(default_factory=dict)
    references: dict[str, Reference] = field(default_factory=dict)
    pool: str = "default"
    reuse: bool = True

    @property
    def path(self) -> Path:
        return ("stages", self.name)

    def fields(self) -> dict[str, Any]:
        """The config as JSON. Of a stage at fault: what is written, and the defaults of what is not."""
        if self.config is not None:
            return self.config.model_dump(mode="json")
        found = {}
        for name, info in self.kind.config.model_fields.items():
            default = info.get_default(call_default_factory=True, validated_data={})
            value = self.written.get(name, None if default is PydanticUndefined else default)
            found[name] = to_jsonable_python(value, inf_nan_mode="strings")
        return found


def read_stages(recipe: Recipe, faults: Faults) -> dict[str, Draft]:
    """Check every stage's keys, values and references' form. Stages at fault are left out or have no config."""
    found: dict[str, Draft] = {}
    for name, stage in recipe.stages.items():
        recipe.budget.check()
        draft = _read_stage(recipe, stage, faults)
        if draft is not None:
            found[name] = draft
    return found


def _read_stage(recipe: Recipe, stage: Stage, faults: Faults) -> Draft | None:
    path, kind = stage.path, stage.kind
    if not NAME.match(stage.name):
        recipe.fault(faults, path, f"the name {NAME_RULE}")
    if not isinstance(stage.node.value, dict):
        recipe.fault(faults, path, "must be a mapping with `run` and the stage's fields")
        return None
    if kind is None:
        _refuse_kind(recipe, stage, faults)
        return None
    draft = Draft(stage.name, kind)
    rest = {**stage.fields}
    _read_options(recipe, draft, rest, faults)
    for slot_name, slot in kind.slots.items():
        if slot_name not in rest:
            continue
        at = (*path, slot_name)
        if slot_name in kind.config.model_fields and isinstance(rest[slot_name], dict):
            continue  # a field of the config takes the place of the input: an endpoint that judges
        if isinstance(rest[slot_name], list):
            refuse_many(recipe.location(at), "items", len(rest[slot_name]), MAX_REFERENCES)
        if not slot.many:
            _add_reference(recipe, draft, slot_name, rest.pop(slot_name), at, faults)
        elif slot_name == "parts":
            rest["parts"] = _read_parts(recipe, draft, rest["parts"], at, faults)
        elif slot_name == "entrants":
            rest["entrants"] = _read_entrants(recipe, draft, rest["entrants"], at, faults)
            _refuse_n(recipe, draft, rest.get("decoding"), faults)
        elif slot_name == "best_of":
            recipe.fault(faults, at, "belongs to an entrant: `{model: sft, best_of: 8, reward: reward}`")
            rest.pop(slot_name)
        else:
            _read_list(recipe, draft, slot_name, rest.pop(slot_name), at, faults)
    draft.written = rest
    draft.config = _validate(recipe, draft, rest, faults)
    return draft


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


def _read_options(recipe: Recipe, draft: Draft, rest: dict[str, Any], faults: Faults) -> None:
    pool, reuse = rest.pop("pool", "default"), rest.pop("reuse", True)
    if not (isinstance(pool, str) and NAME.match(pool)):
        recipe.fault(faults, (*draft.path, "pool"), f"the name of a pool {NAME_RULE}")
    else:
        draft.pool = pool
    if not isinstance(reuse, bool):
        recipe.fault(faults, (*draft.path, "reuse"), f"must be true or false, got {reuse!r}")
    else:
        draft.reuse = reuse


def _add_reference(recipe: Recipe, draft: Draft, slot: str, value: Any, at: Path, faults: Faults) -> None:
    name, _, output = value.partition(".") if isinstance(value, str) else ("", "", "")
    to_input = name.startswith("$")
    further = not to_input and NAME.match(output)
    if not NAME.match(name.removeprefix("$")) or not (further or "." not in value):
        recipe.fault(faults, at, f"must be the name of a stage, or `$` and the name of an input; got {value!r}")
        return
    draft.references[slot] = Reference(name.removeprefix("$"), to_input, at, output or None)


def _read_list(recipe: Recipe, draft: Draft, slot: str, value: Any, at: Path, faults: Faults) -> None:
    """`rewards: [a, b]`, or a single name."""
    items = value if isinstance(value, list) else [value]
    for i, item in enumerate(items):
        _add_reference(recipe, draft, f"{slot}.{i}", item, (*at, i) if isinstance(value, list) else at, faults)


def _read_parts(recipe: Recipe, draft: Draft, value: Any, at: Path, faults: Faults) -> Any:
    """`[{data: name, share: ..., side: ...}]`; a bare name is a part with defaults. Gives the config's parts."""
    if not isinstance(value, list):
        return value
    parts = []
    for i, item in enumerate(value):
        part = {"data": item} if isinstance(item, str) else item
        if not isinstance(part, dict):
            parts.append(part)
            continue
        if "data" not in part:
            recipe.fault(faults, (*at, i), "needs `data`: the dataset of this part")
        else:
            place = (*at, i) if isinstance(item, str) else (*at, i, "data")
            _add_reference(recipe, draft, f"parts.{i}", part["data"], place, faults)
        parts.append({key: field_value for key, field_value in part.items() if key != "data"})
    return parts


def _read_entrants(recipe: Recipe, draft: Draft, value: Any, at: Path, faults: Faults) -> Any:
    """`[sft, {model: dt, scores: [...]}, {model: sft, best_of: 8, reward: reward}, {model: sft, samples: 8}]`, as the
    config's entrants."""
    if not isinstance(value, list):
        return value
    entrants = []
    for i, item in enumerate(value):
        entrant = {"model": item} if isinstance(item, str) else item
        if not isinstance(entrant, dict):
            entrants.append(entrant)
            continue
        if "model" not in entrant:
            recipe.fault(faults, (*at, i), "needs `model`: the model that answers")
        else:
            place = (*at, i) if isinstance(item, str) else (*at, i, "model")
            _add_reference(recipe, draft, f"entrants.{i}", entrant["model"], place, faults)
        if "reward" in entrant:
            _add_reference(recipe, draft, f"best_of.{i}", entrant["reward"], (*at, i, "reward"), faults)
        if ("reward" in entrant) != (entrant.get("best_of") is not None):
            recipe.fault(faults, (*at, i), "needs both `best_of` and the `reward` model that chooses, or neither")
        entrants.append({key: field_value for key, field_value in entrant.items() if key not in ("model", "reward")})
    return entrants


def _refuse_n(recipe: Recipe, draft: Draft, decoding: Any, faults: Faults) -> None:
    """Refuses `n` in the decoding of an evaluation: each entrant has its own number of answers."""
    if isinstance(decoding, dict) and decoding.get("n", 1) != 1:
        words = "has no effect on an evaluation: give an entrant `samples`, or `best_of` and a `reward`"
        recipe.fault(faults, (*draft.path, "decoding", "n"), words)


def _validate(recipe: Recipe, draft: Draft, rest: dict[str, Any], faults: Faults) -> RunConfig | None:
    """The config, by the very class that the server, the stage and the launch forms use. Strict: no "5" for 5."""
    try:
        return RUN_CONFIG.validate_python(draft.kind.config.model_validate(rest, strict=True))
    except ValidationError as error:
        more = (*draft.kind.slots, *STAGE_OPTIONS)
        recipe.invalid(faults, draft.path, error, draft.kind.config, more)
        return None
