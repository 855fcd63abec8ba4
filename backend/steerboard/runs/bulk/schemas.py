"""The API's schemas of what is done to several runs."""

from __future__ import annotations

import uuid
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from steerboard.marks.schemas import MOST_TAGS, Tag

MOST_RUNS = 500
Action = Literal["tag", "archive", "restore", "cancel", "delete"]


class BulkChange(BaseModel):
    """`skip`: do it to those runs to which it can be done, instead of to none where it cannot be done to all."""

    model_config = ConfigDict(extra="forbid")

    action: Action
    runs: Annotated[list[uuid.UUID], Field(min_length=1, max_length=MOST_RUNS)]
    add_tags: Annotated[list[Tag], Field(max_length=MOST_TAGS)] = []
    remove_tags: Annotated[list[str], Field(max_length=MOST_TAGS)] = []
    skip: bool = False

    @model_validator(mode="after")
    def _tags_something(self) -> BulkChange:
        if (self.action == "tag") != bool(self.add_tags or self.remove_tags):
            raise ValueError("tags are for the action `tag`, which needs some")
        return self


class NamedThing(BaseModel):
    """`name` of a stage is `PIPELINE.STAGE`."""

    type: Literal["run", "pipeline", "model", "dataset", "report"]
    id: uuid.UUID
    name: str


class Consequence(BaseModel):
    """What happens to one run, and to what depends on it.

    `why`: why it cannot be done; `needs`: the runs to which it must be done as well. `ends`: runs that are cancelled
    with it. `loses`: what is deleted with it, besides its metrics, log and checkpoints. `keeps`: what it made, which
    stays without the run that made it.
    """

    run: NamedThing
    why: str | None = None
    needs: list[NamedThing] = []
    ends: list[NamedThing] = []
    loses: list[NamedThing] = []
    keeps: list[NamedThing] = []


class BulkResult(BaseModel):
    """`done`: the runs to which it was done, or would be. `skipped`: the others, each with its reason."""

    done: list[Consequence]
    skipped: list[Consequence]
