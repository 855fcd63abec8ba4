"""What the API takes and says about recipes."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from steerboard.recipes.catalogue import KnownDataset
from steerboard.recipes.document import MAX_BYTES, parse
from steerboard.recipes.inputs import StageRef
from steerboard.recipes.overrides import MAX_OVERRIDES
from steerboard.recipes.plan import Plan, PlannedStage
from steerboard.recipes.sources import Source


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


class PipelineCreate(RecipeRequest):
    """`reuse: false` does every stage anew, also where an equal one has finished."""

    reuse: bool = True


class RecipeInputOut(BaseModel):
    """An input that a start sets with `NAME=dataset-or-model`. `kind` of a dataset."""

    name: str
    type: Literal["dataset", "model"]
    kind: str | None
    optional: bool


class RecipeOut(BaseModel):
    """A recipe's text and what its launch form needs."""

    name: str
    description: str
    text: str
    inputs: list[RecipeInputOut]

    @classmethod
    def of(cls, text: str) -> RecipeOut:
        """Raises `InvalidRecipe` where the YAML itself is broken. Inputs that are not well formed are left out: a
        check says what is wrong with them."""
        data = parse(text).data
        inputs = data.get("inputs")
        found = [
            RecipeInputOut(
                name=name,
                type=fields["type"],
                kind=str(fields["kind"]) if fields.get("kind") else None,
                optional=fields.get("optional") is True,
            )
            for name, fields in (inputs.items() if isinstance(inputs, dict) else ())
            if isinstance(fields, dict) and fields.get("type") in ("dataset", "model")
        ]
        return cls(
            name=str(data.get("name") or ""), description=str(data.get("description") or ""), text=text, inputs=found
        )


class RecipeText(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(max_length=MAX_BYTES)]


class PlannedInput(BaseModel):
    type: Literal["stage", "dataset", "model"]
    name: str

    @classmethod
    def of(cls, source: Source) -> PlannedInput:
        if isinstance(source, StageRef):
            return cls(type="stage", name=source.stage)
        return cls(type="dataset" if isinstance(source, KnownDataset) else "model", name=source.name)


class PlannedStageOut(BaseModel):
    """One stage with its whole config. `implied`: the recipe does not spell it out."""

    name: str
    kind: str
    method: str | None
    config: dict[str, Any]
    inputs: dict[str, PlannedInput]
    pool: str
    reuse: bool
    implied: bool

    @classmethod
    def of(cls, stage: PlannedStage) -> PlannedStageOut:
        return cls(
            name=stage.name,
            kind=stage.config.run,
            method=getattr(stage.config, "method", None),
            config=stage.config.model_dump(mode="json"),
            inputs={name: PlannedInput.of(source) for name, source in stage.inputs.items()},
            pool=stage.pool,
            reuse=stage.reuse,
            implied=stage.implied,
        )


class PlanOut(BaseModel):
    """What a start would do, in the order in which it would do it."""

    name: str
    description: str
    stages: list[PlannedStageOut]
    notes: list[str]

    @classmethod
    def of(cls, plan: Plan) -> PlanOut:
        stages = [PlannedStageOut.of(stage) for stage in plan.stages]
        return cls(name=plan.name, description=plan.description, stages=stages, notes=plan.notes)
