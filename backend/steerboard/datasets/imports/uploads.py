"""Uploaded forms, and their fields checked into options."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar, cast

import orjson
from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from starlette.datastructures import FormData, UploadFile

from steerboard.accounts.access import Access, AccessTo
from steerboard.datasets.imports.importer import ImportOptions
from steerboard.datasets.schemas import BadRows
from steerboard.platform.http.errors import InvalidRequest
from steerboard_contracts.errors import ErrorLocation
from steerboard_contracts.samples import SampleKind
from steerboard_files.records import Source

T = TypeVar("T", bound=BaseModel)
Write = Annotated[Access, Depends(AccessTo("write"))]


async def upload_form(request: Request) -> FormData:
    """The form, which `accounts.http.routes` has taken in; empty where the body is none."""
    return await request.form()


Form = Annotated[FormData, Depends(upload_form)]


class ImportForm(BaseModel):
    """The form fields of an import besides its file. `mapping`: a JSON object, or `field=column,field=column`."""

    model_config = ConfigDict(extra="forbid")

    name: str
    hub: str | None = Field(default=None, description="Instead of a file: `org/name[@revision][:split]` on the hub.")
    kind: SampleKind | None = Field(default=None, description="Recognised from the columns when absent.")
    mapping: dict[str, str] = Field(default={}, description='{"field": "column"} or `field=column,field=column`')
    bad_rows: BadRows = "refuse"
    clean: bool = True
    min_margin: float | None = None
    unused: Literal["keep", "refuse"] = Field(
        default="keep", description="refuse: import nothing while a column feeds no field (`unused_columns`)."
    )

    @field_validator("mapping", mode="before")
    @classmethod
    def _parse(cls, value: Any) -> Any:
        return parse_mapping(value) if isinstance(value, str) else value

    @property
    def options(self) -> ImportOptions:
        return ImportOptions(self.kind, self.mapping, self.bad_rows, self.clean, self.min_margin, unused=self.unused)


class RewardsForm(BaseModel):
    """The form field of a rewards import besides its file."""

    model_config = ConfigDict(extra="forbid")

    source: str = Field(description="Name of the reward source that gave these rewards.")


def parse_mapping(text: str) -> dict[str, str]:
    """`prompt=question,chosen=good` or the same as a JSON object. Raises `ValueError`."""
    if text.lstrip().startswith("{"):
        return cast(dict[str, str], orjson.loads(text))
    pairs: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        field, equals, column = part.partition("=")
        if not equals or not field.strip() or not column.strip():
            raise ValueError(f"{part!r} is not of the form field=column")
        pairs[field.strip()] = column.strip()
    return pairs


def checked(model: type[T], form: FormData) -> T:
    """The form's text fields as `model`. Raises `InvalidRequest` naming each field at fault."""
    fields = {name: value for name, value in form.items() if isinstance(value, str) and value != ""}
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        places = [
            ErrorLocation(location=".".join(str(part) for part in problem["loc"]), message=problem["msg"])
            for problem in error.errors(include_url=False)
        ]
        raise InvalidRequest("The form has fields that cannot be used.", errors=places) from error


def uploaded(form: FormData) -> Source | None:
    """The form's file, if it has one."""
    file = uploaded_file(form)
    return Source(label_of(file), lambda: file.file) if file else None


def uploaded_file(form: FormData) -> UploadFile | None:
    file = form.get("file")
    return file if isinstance(file, UploadFile) else None


def label_of(file: UploadFile) -> str:
    """The last part of its name alone: some clients send a path."""
    return (file.filename or "upload").replace("\\", "/").rsplit("/", 1)[-1]


def form_body(model: type[BaseModel], file_needed: bool) -> dict[str, Any]:
    """The OpenAPI description of a form that is parsed by hand."""
    schema = model.model_json_schema()
    schema["properties"]["file"] = {"type": "string", "format": "binary"}
    if file_needed:
        schema["required"] = [*schema.get("required", []), "file"]
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}
