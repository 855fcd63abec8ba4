"""What the API takes and gives of endpoints. A key goes in and never comes out."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr


def _sendable(key: SecretStr) -> SecretStr:
    """Valid in a header. Without the value in its message, which goes into the problem document."""
    if not all("!" <= letter <= "~" for letter in key.get_secret_value()):
        raise ValueError("a key has only printable ASCII characters and no spaces")
    return key


Key = Annotated[SecretStr, Field(min_length=1, max_length=4096), AfterValidator(_sendable)]
ServedName = Annotated[str, Field(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f]+$")]


class EndpointCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    base_url: Annotated[str, Field(description="Address of an OpenAI-compatible server, usually ending in /v1.")]
    model: Annotated[ServedName, Field(description="The name by which the endpoint knows the model.")]
    api_key: Annotated[Key | None, Field(description="Stored sealed, never shown again.")] = None
    policy_model: Annotated[
        str | None, Field(description="Name or id of the registry's model that it serves: gives its scores.")
    ] = None
    guides: Annotated[
        bool,
        Field(description="Takes `vllm_xargs.guidance`, as `steerboard models serve --guidance` starts a server."),
    ] = False


class EndpointChange(BaseModel):
    """Only what is given changes; null takes `api_key` or `policy_model` away. With another `base_url`, `guides` is
    false unless it is given, too."""

    model_config = ConfigDict(extra="forbid")

    name: str | None = None
    base_url: str | None = None
    model: ServedName | None = None
    api_key: Key | None = None
    policy_model: str | None = None
    guides: bool | None = None


class EndpointModel(BaseModel):
    id: uuid.UUID
    name: str


class EndpointOut(BaseModel):
    """`policy_model`: the registry's model whose weights it serves, and with that its score format. `guides`: guidance
    may be asked of it."""

    id: uuid.UUID
    name: str
    base_url: str
    model: str
    has_key: bool
    policy_model: EndpointModel | None
    guides: bool
    created_at: dt.datetime


class EndpointProblem(BaseModel):
    """A problem document: `code` is stable."""

    code: str
    detail: str
    hint: str | None


class EndpointCheck(BaseModel):
    """`models`: what the endpoint lists. `ok`: it answers and lists the model; else `problem` explains why not."""

    ok: bool
    models: list[str]
    seconds: float
    problem: EndpointProblem | None
