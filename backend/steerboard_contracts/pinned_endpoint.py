"""The endpoint that a run was made to ask, as it was then: answers of two models are never one result."""

from __future__ import annotations

from uuid import UUID

from pydantic.json_schema import SkipJsonSchema

from steerboard_contracts.fields import Config


class PinnedEndpoint(Config):
    """`model`: the server's own name for what it serves."""

    id: UUID
    base_url: str
    model: str


class AsksEndpoint(Config):
    """`pinned_endpoint` is filled in when a run is made, whatever is given: no form has it."""

    pinned_endpoint: SkipJsonSchema[PinnedEndpoint | None] = None
