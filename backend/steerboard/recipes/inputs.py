"""The `inputs` of a recipe: how they are declared, and their values in this start."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from steerboard.recipes.errors import Faults
from steerboard.recipes.limits import MAX_INPUTS, refuse_many
from steerboard.recipes.places import Path
from steerboard.recipes.recipe import Recipe
from steerboard.runs.kinds import misfit
from steerboard.runs.launch.lookup import Catalogue, KnownDataset, KnownModel
from steerboard_contracts.complaints import did_you_mean
from steerboard_contracts.files.base_sources import source_type
from steerboard_contracts.samples import SampleKind
from steerboard_contracts.specs.slots import datasets

NAME = re.compile(r"^[A-Za-z][A-Za-z0-9_-]{0,63}$")
NAME_RULE = "must start with a letter and hold only letters, digits, `_` and `-`, at most 64"


class _Declaration(BaseModel):
    model_config = ConfigDict(extra="forbid")

    optional: bool = False
    description: str = ""
    default: Annotated[str | None, Field(description="Taken when no value is set.")] = None


class ModelDeclaration(_Declaration):
    type: Literal["model"]


class DatasetDeclaration(_Declaration):
    type: Literal["dataset"]
    kind: SampleKind


Declaration = ModelDeclaration | DatasetDeclaration


@dataclass(frozen=True)
class StageRef:
    """The output of a stage of the same recipe; `output` is the role of a further one, such as a critic."""

    stage: str
    output: str | None = None

    @property
    def text(self) -> str:
        return f"{self.stage}.{self.output}" if self.output else self.stage


@dataclass(frozen=True)
class Outside:
    """A base model that a `base` stage must import first."""

    source: str


Value = KnownDataset | KnownModel | StageRef | Outside | None


def declarations(recipe: Recipe, faults: Faults) -> dict[str, Declaration]:
    """Check the `inputs` section."""
    raw = recipe.sections.get("inputs") or {}
    if not isinstance(raw, dict):
        recipe.fault(faults, ("inputs",), "must be a mapping of names to {type: model} or {type: dataset, kind: ...}")
        return {}
    refuse_many(recipe.location(("inputs",)), "inputs", len(raw), MAX_INPUTS)
    by_name: dict[str, Declaration] = {}
    for name, fields in raw.items():
        path: Path = ("inputs", name)
        if not NAME.match(name):
            recipe.fault(faults, path, f"the name {NAME_RULE}")
        declared = _declaration(recipe, path, fields, faults)
        if declared is not None:
            by_name[name] = declared
    return by_name


def _declaration(recipe: Recipe, path: Path, fields: Any, faults: Faults) -> Declaration | None:
    if not isinstance(fields, dict):
        recipe.fault(faults, path, "must be {type: model} or {type: dataset, kind: ...}")
        return None
    if fields.get("type") not in ("model", "dataset"):
        at = (*path, "type") if "type" in fields else path
        recipe.fault(faults, at, "needs `type: model` or `type: dataset`")
        return None
    declaration: type[Declaration] = ModelDeclaration if fields["type"] == "model" else DatasetDeclaration
    try:
        return declaration.model_validate(fields, strict=True)
    except ValidationError as error:
        recipe.invalid(faults, path, error, declaration)
        return None


def resolve(
    recipe: Recipe,
    declared: Mapping[str, Declaration],
    set_values: Mapping[str, str | None],
    catalogue: Catalogue,
    faults: Faults,
    unread: Collection[str] = (),
) -> dict[str, Value]:
    """Look every input up. None: not given, and optional or `unread` (implied.py may still find a stand-in)."""
    values: dict[str, Value] = {}
    for name, declaration in declared.items():
        path: Path = ("inputs", name)
        ref = set_values.get(name) if name in set_values else declaration.default
        if not ref:
            values[name] = None
            if not declaration.optional and name not in unread:
                recipe.fault(
                    faults, path, f"needs a value: --set {name}={'MODEL' if declaration.type == 'model' else 'DATASET'}"
                )
        elif isinstance(declaration, DatasetDeclaration):
            values[name] = _dataset(recipe, path, declaration, ref, catalogue, faults)
        else:
            values[name] = _model(recipe, path, ref, catalogue, faults)
    return values


def _dataset(
    recipe: Recipe, path: Path, declaration: DatasetDeclaration, ref: str, catalogue: Catalogue, faults: Faults
) -> KnownDataset | None:
    dataset = catalogue.dataset(ref)
    if dataset is None:
        message = f"there is no dataset `{ref}` in the project" + did_you_mean(ref, catalogue.dataset_names())
        recipe.fault(faults, path, message)
        return None
    if dataset.kind != declaration.kind:
        what = f"`{ref}` is of kind {dataset.kind}"
        recipe.fault(faults, path, misfit(datasets(declaration.kind), what, dataset.kind, ref))
        return None
    return dataset


def _model(recipe: Recipe, path: Path, ref: str, catalogue: Catalogue, faults: Faults) -> Value:
    model = catalogue.model(ref)
    if model is not None:
        return model
    if source_type(ref) is not None:
        return Outside(ref)
    recipe.fault(
        faults,
        path,
        f"there is no model `{ref}` in the project, nor is it a folder (./name), a hub name (org/name) or "
        "random:tiny-llama" + did_you_mean(ref, catalogue.model_names()),
    )
    return None
