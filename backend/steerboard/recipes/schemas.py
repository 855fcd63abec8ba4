"""The API's schemas of recipes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from steerboard.recipes.draft import Draft, read_stages
from steerboard.recipes.errors import Faults
from steerboard.recipes.inputs import StageRef
from steerboard.recipes.limits import MAX_BYTES, Budget
from steerboard.recipes.overrides import MAX_OVERRIDES
from steerboard.recipes.planning.plan import Plan, PlannedStage, Reading
from steerboard.recipes.planning.rounds import expand_rounds
from steerboard.recipes.recipe import Recipe
from steerboard.recipes.sources import Source
from steerboard.runs.kinds import needs_whole
from steerboard.runs.launch.lookup import KnownDataset
from steerboard.runs.schemas.runs import RowCheck
from steerboard_contracts.run_config import RunConfig
from steerboard_contracts.watching.warnings import RunWarning

# A stage's warnings before a start, by its config, where that is valid, and its inputs.
Foresee = Callable[[RunConfig | None, Mapping[str, Source]], list[RunWarning]]


class RecipeRequest(BaseModel):
    """A recipe's text, or the name of a shipped one, with overrides: `{"recipe": "demo", "set": ["dt.lr=1e-4"]}`."""

    model_config = ConfigDict(extra="forbid")

    recipe: Annotated[str | None, Field(max_length=64, description="Name of a shipped recipe.")] = None
    text: Annotated[str | None, Field(max_length=MAX_BYTES, description="The YAML itself.")] = None
    set: Annotated[list[Annotated[str, Field(max_length=10_000)]], Field(max_length=MAX_OVERRIDES)] = []

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.recipe is None) == (self.text is None):
            raise ValueError("give either `recipe` or `text`")
        return self


class RecipeCheck(RecipeRequest):
    """`from_stage`: what a start from this stage would do; refused where that start would be."""

    from_stage: Annotated[str | None, Field(max_length=64)] = None


class PipelineCreate(RecipeCheck):
    """`reuse: false` runs every stage again, even if an equal one has finished. `from_stage` runs this stage and those
    after it again; what they read of others is taken from finished equal runs, and the start refused without one."""

    reuse: bool = True

    @model_validator(mode="after")
    def _takes_or_not(self) -> Self:
        if self.from_stage is not None and not self.reuse:
            raise ValueError("`from_stage` takes what finished runs made, which `reuse: false` forbids")
        return self


class RecipeInputOut(BaseModel):
    """An input that a start sets with `NAME=dataset-or-model`. `kind` of a dataset; `roles` of models that every stage
    takes which reads it, and `whole` where one of them takes no adapter over its base."""

    name: str
    type: Literal["dataset", "model"]
    kind: str | None
    roles: list[str] = []
    whole: bool = False
    optional: bool


class RecipeOut(BaseModel):
    """A recipe's text and what its launch form needs."""

    name: str
    description: str
    text: str
    inputs: list[RecipeInputOut]

    @classmethod
    def of(cls, text: str, budget: Budget | None = None) -> RecipeOut:
        """Raises `InvalidRecipe` where the YAML itself is broken or too large. Inputs that are not well formed are left
        out: a check reports what is wrong with them."""
        recipe = Recipe.read(text, budget)
        data, inputs = recipe.sections, recipe.sections.get("inputs")
        recipe.check_size()
        recipe, _, _ = expand_rounds(recipe, [], Faults())
        drafts = read_stages(recipe, Faults())
        declared = [
            RecipeInputOut(
                name=name,
                type=fields["type"],
                kind=str(fields["kind"]) if fields.get("kind") else None,
                roles=_roles(name, drafts) if fields["type"] == "model" else [],
                whole=any(needs_whole(draft.config, slot) for draft, slot in _readers(name, drafts)),
                optional=fields.get("optional") is True,
            )
            for name, fields in (inputs.items() if isinstance(inputs, dict) else ())
            if isinstance(fields, dict) and fields.get("type") in ("dataset", "model")
        ]
        return cls(
            name=str(data.get("name") or ""), description=str(data.get("description") or ""), text=text, inputs=declared
        )


def _readers(name: str, drafts: Mapping[str, Draft]) -> list[tuple[Draft, str]]:
    """The stages that read an input, each with the slot in which it does."""
    return [
        (draft, slot.split(".")[0])
        for draft in drafts.values()
        for slot, reference in draft.references.items()
        if reference.to_input and reference.name == name
    ]


def _roles(name: str, drafts: Mapping[str, Draft]) -> list[str]:
    slots = [draft.kind.slots_of(draft.references)[slot].allowed for draft, slot in _readers(name, drafts)]
    return sorted(frozenset.intersection(*slots)) if slots else []


class RecipeText(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(max_length=MAX_BYTES)]


class PlannedInput(BaseModel):
    type: Literal["stage", "dataset", "model"]
    name: str

    @classmethod
    def of(cls, source: Source) -> PlannedInput:
        if isinstance(source, StageRef):
            return cls(type="stage", name=source.text)
        return cls(type="dataset" if isinstance(source, KnownDataset) else "model", name=source.name)


class PlannedStageOut(BaseModel):
    """One stage with its whole config. `implied`: the recipe does not spell it out. `warnings`: what its owner must
    know before a start."""

    name: str
    kind: str
    method: str | None
    config: dict[str, Any]
    inputs: dict[str, PlannedInput]
    pool: str
    reuse: bool
    implied: bool
    warnings: list[RunWarning] = []

    @classmethod
    def of(cls, stage: PlannedStage, foresee: Foresee) -> PlannedStageOut:
        return cls(
            name=stage.name,
            kind=stage.config.run,
            method=getattr(stage.config, "method", None),
            config=stage.config.model_dump(mode="json"),
            inputs={name: PlannedInput.of(source) for name, source in stage.inputs.items()},
            pool=stage.pool,
            reuse=stage.reuse,
            implied=stage.implied,
            warnings=foresee(stage.config, stage.inputs),
        )


class StagesRowCheck(BaseModel):
    """One check of the rows of stages that would give them the same tokens, by a worker of `pool`. `not_checked`: why
    none can be made before a launch; the runs of these stages check their rows themselves."""

    stages: list[str]
    pool: str | None = None
    check: RowCheck | None = None
    not_checked: str | None = None


class RecipeFault(BaseModel):
    """`field`: the dotted path of what is wrong, such as `stages.sft.lr`; empty for the recipe as a whole. `line` and
    `column`: its place in the recipe's text, from 1; null for an override."""

    field: str
    location: str
    message: str
    line: int | None = None
    column: int | None = None


class DraftOut(BaseModel):
    """A recipe that is being written: its stages as far as they can be read, and what is wrong with it. A field at
    fault is shown as it was written. A start needs `faults` to be empty."""

    stages: list[PlannedStageOut]
    notes: list[str]
    faults: list[RecipeFault]

    @classmethod
    def of(cls, reading: Reading, foresee: Foresee) -> DraftOut:
        stages = [
            PlannedStageOut(
                name=name,
                kind=reading.drafts[name].kind.run,
                method=reading.drafts[name].kind.method,
                config=reading.drafts[name].fields(),
                inputs={slot: PlannedInput.of(source) for slot, source in reading.inputs[name].items()},
                pool=reading.drafts[name].pool,
                reuse=reading.drafts[name].reuse,
                implied=name in reading.implied,
                warnings=foresee(reading.drafts[name].config, reading.inputs[name]),
            )
            for name in reading.order
        ]
        faults = [
            RecipeFault(
                field=fault.field,
                location=fault.location,
                message=fault.message,
                line=fault.line,
                column=fault.column,
            )
            for fault in reading.faults.ordered()
        ]
        return cls(stages=stages, notes=reading.notes, faults=faults)


class PlanOut(BaseModel):
    """What a start would do, in the order in which it would do it."""

    name: str
    description: str
    stages: list[PlannedStageOut]
    notes: list[str]

    @classmethod
    def of(cls, plan: Plan, foresee: Foresee, running: Collection[str] | None = None) -> PlanOut:
        """The plan; with `running`, of these stages alone."""
        stages = [
            PlannedStageOut.of(stage, foresee) for stage in plan.stages if running is None or stage.name in running
        ]
        return cls(name=plan.name, description=plan.description, stages=stages, notes=plan.notes)
