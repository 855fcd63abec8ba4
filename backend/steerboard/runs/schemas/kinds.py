"""The API's schemas of run kinds and training methods."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from steerboard_contracts.run_kinds import parts_of
from steerboard_contracts.specs.method import MethodSpec, PreviewKind
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.topics import with_topics


class SlotOut(BaseModel):
    """One input of a run kind. `many`: a list, named `NAME.0`, `NAME.1`, ... `or_field`: the field of the config in
    which its rows can be written out instead; one of both is needed."""

    name: str
    type: Literal["model", "dataset"]
    allowed: list[str]
    many: bool
    required: bool
    or_field: str | None = None


class PreviewOut(BaseModel):
    """What the form shows of the data; `fields` maps what the preview takes to fields of the config."""

    kind: PreviewKind
    fields: dict[str, str]


class MethodOut(BaseModel):
    """A training method. `condition`: the config's field with the default condition of its policies; null if they take
    none. `package`: the Python package that provides it; null for the platform's own."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    title: str
    label: str
    source: str
    outputs: list[str]
    sequences: int
    learns_from_rewards: bool
    baseline: bool
    recommended: bool = Field(description="What to begin with among the methods that learn from the same data.")
    condition: str | None
    preview: PreviewOut | None
    first_metrics: list[str] = Field(description="Curves that its runs show first.")
    package: str | None
    version: str | None

    @classmethod
    def of(cls, spec: MethodSpec) -> MethodOut:
        preview = {"kind": spec.preview.kind, "fields": dict(spec.preview.fields)} if spec.preview else None
        lists = {"outputs": list(spec.outputs), "first_metrics": list(spec.first_metrics)}
        fields = {name: getattr(spec, name) for name in cls.model_fields}
        return cls.model_validate({**fields, **lists, "preview": preview})


class MethodLeftOut(BaseModel):
    """A method of another package that is installed and cannot be used. `name` is its entry point's."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    package: str
    code: str
    detail: str


class MethodsOut(BaseModel):
    """The training methods that the server knows, and those that it had to leave out."""

    methods: list[MethodOut]
    left_out: list[MethodLeftOut]


class RunKindCard(BaseModel):
    """A run kind that people start, or training by one method. `key` names it in the address of its form.

    `makes`: role of the model or kind of the dataset that comes out by default; `makes_by`: a field of the config that
    decides it, and what comes out by its value. `for_data` and `for_model`: what the page of a dataset of that kind, or
    of a model of that role, offers. `form`: fields that the form shows first.
    """

    key: str
    kind: str
    method: str | None
    title: str
    about: str
    inputs: list[SlotOut]
    makes: str | None
    makes_type: Literal["model", "dataset"] | None
    makes_by: tuple[str, dict[str, str]] | None
    parts: Annotated[list[str], Field(description="Kinds of the runs that it starts to do its work.")]
    needs_field: Annotated[
        dict[str, str], Field(description="By kind of dataset, a field that each of its rows must have.")
    ]
    form: list[str]
    for_data: dict[str, str]
    for_model: dict[str, str]
    training: MethodOut | None

    @classmethod
    def of(cls, kind: RunKindSpec) -> Self:
        return cls.model_validate(cls._fields(kind))

    @classmethod
    def _fields(cls, kind: RunKindSpec) -> dict[str, Any]:
        return {
            "key": kind.key,
            "kind": kind.run,
            "method": kind.method,
            "title": kind.title,
            "about": kind.about,
            "inputs": [
                SlotOut(
                    name=name,
                    type=slot.thing,
                    allowed=sorted(slot.allowed),
                    many=slot.many,
                    required=slot.required,
                    or_field=slot.or_field,
                )
                for name, slot in kind.slots.items()
            ],
            "makes": kind.makes,
            "makes_type": kind.makes_thing,
            "makes_by": kind.makes_by,
            "parts": list(parts_of(kind)),
            "needs_field": dict(kind.needs_field),
            "form": list(kind.form),
            "for_data": dict(kind.for_data),
            "for_model": dict(kind.for_model),
            "training": MethodOut.of(kind.training) if kind.training else None,
        }


class RunKindOut(RunKindCard):
    """A run kind with what a launch form needs: the config's JSON Schema."""

    description: str
    config_schema: dict[str, Any]

    @classmethod
    def _fields(cls, kind: RunKindSpec) -> dict[str, Any]:
        return super()._fields(kind) | {
            "description": (kind.config.__doc__ or "").strip(),
            "config_schema": with_topics(kind.config.model_json_schema()),
        }
