"""What datasets need to know of what is above them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access
from steerboard.platform.hooks import Hook
from steerboard_files.records import Source

# The dataset or model that `<pipeline>.<stage>` of a project made or reused.
stage_output: Hook[[Session, uuid.UUID, str, Literal["dataset", "model"]], uuid.UUID | None] = Hook("stage_output")

# Whether a run has read or made this dataset or model.
used_by_run: Hook[[Session, Literal["dataset", "model"], uuid.UUID], bool] = Hook("used_by_run")

# The module that is run to import, with all tables and, for requests, all hooks.
import_process: Hook[[], str] = Hook("import_process")


@dataclass(frozen=True, slots=True)
class ToImport:
    """A form with its checked fields, and its file where it has one. `into`: the dataset or evaluation that it is for,
    by id or name."""

    form: dict[str, Any]
    source: Source | None
    into: str

    @property
    def file(self) -> Source:
        """The source of imports that always have one: their endpoints have seen to it."""
        assert self.source is not None
        return self.source


# Imports what a request brought, in the import process: datasets, rewards, prompt sets, answers and judgments, by name;
# or cleans a dataset.
# Returns what the request is answered.
import_request: Hook[[str, Session, Access, ToImport], BaseModel] = Hook("import_request")


class EvaluationText(NamedTuple):
    """A prompt that models are measured on: what is looked for in training data, and where it is from."""

    type: Literal["evaluation", "prompt_set"]
    name: str
    position: int
    text: str


# The prompts of a project's evaluations and prompt sets of these names; None: of all but the evaluation that the data
# were made from. Raises `NotFound`.
evaluation_texts: Hook[[Session, uuid.UUID, list[str] | None, uuid.UUID | None], list[EvaluationText]] = Hook(
    "evaluation_texts"
)

# The content hash of a model.
model_hash: Hook[[Session, uuid.UUID], str | None] = Hook("model_hash")
