"""Uploaded forms, parsed only after the caller is known, and their fields checked into options."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator
from typing import Annotated, Any, TypeVar, cast

import orjson
from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from starlette.datastructures import FormData, UploadFile

from steerboard.datasets.files.records import Source
from steerboard.datasets.importing import ImportOptions
from steerboard.datasets.schemas import BadRows
from steerboard.platform.access import Access, AccessTo
from steerboard.platform.errors import InvalidRequest
from steerboard.platform.idempotency import MAX_FIELDS, MAX_FILES
from steerboard_contracts.errors import ErrorLocation, NoSpaceLeft
from steerboard_contracts.samples import SampleKind

T = TypeVar("T", bound=BaseModel)
Write = Annotated[Access, Depends(AccessTo("write"))]


async def upload_form(request: Request, _access: Write) -> AsyncIterator[FormData]:
    """The multipart form; its files lie on disk. The platform bounds the body's size."""
    try:
        form = await request.form(max_files=MAX_FILES, max_fields=MAX_FIELDS)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise NoSpaceLeft("the server has no space left for the upload", hint="Free some space.") from error
        raise
    yield form
    await form.close()


Form = Annotated[FormData, Depends(upload_form, scope="function")]


class ImportForm(BaseModel):
    """The fields of an import beside its file. `mapping`: a JSON object, or `field=column,field=column`."""

    model_config = ConfigDict(extra="forbid")

    name: str
    hub: str | None = Field(default=None, description="Instead of a file: `org/name[@revision][:split]` on the hub.")
    kind: SampleKind | None = Field(default=None, description="Recognised from the columns when absent.")
    mapping: dict[str, str] = Field(default={}, description='{"field": "column"} or `field=column,field=column`')
    bad_rows: BadRows = "refuse"
    clean: bool = True
    min_margin: float | None = None

    @field_validator("mapping", mode="before")
    @classmethod
    def _parse(cls, value: Any) -> Any:
        return parse_mapping(value) if isinstance(value, str) else value

    @property
    def options(self) -> ImportOptions:
        return ImportOptions(self.kind, self.mapping, self.bad_rows, self.clean, self.min_margin)


class RewardsForm(BaseModel):
    """The field of a rewards import beside its file."""

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
    file = form.get("file")
    if not isinstance(file, UploadFile):
        return None
    # Only the last part of the name: some clients send a path.
    label = (file.filename or "upload").replace("\\", "/").rsplit("/", 1)[-1]
    return Source(label, lambda: file.file)


def form_body(model: type[BaseModel], file_needed: bool) -> dict[str, Any]:
    """The OpenAPI description of a form that is parsed by hand."""
    schema = model.model_json_schema()
    schema["properties"]["file"] = {"type": "string", "format": "binary"}
    if file_needed:
        schema["required"] = [*schema.get("required", []), "file"]
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}
