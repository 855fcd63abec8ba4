"""The API's schemas of prompt sets, and of the origin of an evaluation's prompts."""

from __future__ import annotations

import uuid
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from steerboard_figures.formats.detection import QuestionFormat


class PromptsFrom(BaseModel):
    """A prompt set, or rows of a dataset: by default the held-out ones, from which nothing here learns. `limit` prompts
    are drawn by `seed`."""

    model_config = ConfigDict(extra="forbid")

    set: Reference | None = None
    dataset: Reference | None = None
    split: Literal["all", "train", "held_out"] = "held_out"
    limit: Annotated[int | None, Field(ge=1, le=20_000)] = None
    seed: int = 0

    @model_validator(mode="after")
    def _one_of_them(self) -> PromptsFrom:
        if (self.set is None) == (self.dataset is None):
            raise ValueError("give either `set` or `dataset`")
        return self


class PromptSetForm(BaseModel):
    """The other form fields. `known`: one of GET prompt-sets/known, fetched where no file is given. Without a
    `name`, the known set's own, or one made from the file's."""

    model_config = ConfigDict(extra="forbid")

    name: str | None = None
    format: Literal["auto"] | QuestionFormat = "auto"
    known: str | None = None


class PromptSetOut(BaseModel):
    """`turns`: of the longest prompt."""

    id: uuid.UUID
    name: str
    format: str
    prompts: int
    turns: int
    categories: list[str]
    created_by: str


class KnownPromptSet(BaseModel):
    """A benchmark's prompts that the server can fetch. They are not shipped; `licence` is what their authors say."""

    name: str
    title: str
    prompts: int
    turns: int
    licence: str
    source: str


Reference = Annotated[str, Field(min_length=1, max_length=200, description="A name or an id.")]
