"""What the API and the CLI see of models."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, computed_field, field_validator

from steerboard_contracts.errors import BadInput
from steerboard_contracts.files.base_sources import gguf_to_read, is_model_file
from steerboard_contracts.models import POLICIES, ModelInfo, ModelRole
from steerboard_contracts.report.pipeline import MethodRow

ModelStage = Literal["candidate", "production"]


class ModelOut(BaseModel):
    id: uuid.UUID
    name: str
    role: ModelRole
    method: str | None
    content_hash: str
    size: int = Field(description="Bytes of all files.")
    parent_id: uuid.UUID | None
    run_id: uuid.UUID | None
    info: ModelInfo
    stage: ModelStage | None = Field(description="Where the newest promotion put it.")
    created_at: dt.datetime

    @computed_field(description="Whether it writes answers.")  # type: ignore[prop-decorator]
    @property
    def answers(self) -> bool:
        return self.role in POLICIES


class ModelFile(BaseModel):
    path: str
    sha256: str
    size: int


class AnnouncedFile(BaseModel):
    """A file to be uploaded. `path` is its name in the folder."""

    model_config = ConfigDict(extra="forbid")

    path: Annotated[str, Field(max_length=255)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size: Annotated[int, Field(ge=0)]

    @field_validator("path")
    @classmethod
    def _of_a_model(cls, path: str) -> str:
        if not is_model_file(path):
            raise ValueError(
                "is not a model file; files may be safetensors, GGUF, config.json, tokenizer files and a few more"
            )
        return path


class ModelUploadCreate(BaseModel):
    """A model folder. `name` is for people."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00-\x1f]*$")]
    files: Annotated[list[AnnouncedFile], Field(min_length=1, max_length=2000)]

    @field_validator("files")
    @classmethod
    def _a_model(cls, files: list[AnnouncedFile]) -> list[AnnouncedFile]:
        names = {file.path for file in files}
        if len(names) < len(files):
            raise ValueError("name a file twice")
        try:
            gguf_to_read(names, "the folder")
        except BadInput as error:
            raise ValueError(f"are not a complete model: {error.detail}") from error
        return files


class ModelUploadFile(BaseModel):
    """Has no form field besides its file."""


class ModelUploadOut(BaseModel):
    """`source` names it as a base model once nothing is `missing`."""

    hash: str
    name: str
    source: str
    missing: list[str]


class NamedRef(BaseModel):
    """Something of the project, to be linked."""

    id: uuid.UUID
    name: str


class ModelDetail(ModelOut):
    """`in_evaluations`: those in which the model answers or scores, the newest first."""

    files: list[ModelFile]
    in_evaluations: list[NamedRef] = []


class PromotionCreate(BaseModel):
    """`stage` null takes the model out of its stage."""

    model_config = ConfigDict(extra="forbid")

    stage: ModelStage | None
    note: Annotated[str, Field(max_length=2000, pattern=r"^[^\x00]*$", description="Why.")] = ""


class RollBack(BaseModel):
    model_config = ConfigDict(extra="forbid")

    note: Annotated[str, Field(max_length=2000, pattern=r"^[^\x00]*$", description="Why.")] = ""


class PromotionOut(BaseModel):
    """One entry of a model's history. `replaced_by` took its place in production."""

    id: uuid.UUID
    stage: ModelStage | None
    note: str
    actor: str
    created_at: dt.datetime
    replaced_by: NamedRef | None


class EvaluatedRow(MethodRow):
    """A row of a report. `reward` is `reward_mean`."""

    reward: float


class ModelEvaluationOut(BaseModel):
    """What one finished evaluation found about a model: a row for each score that was requested from it."""

    run_id: uuid.UUID
    pipeline: NamedRef | None
    created_at: dt.datetime
    prompts: int
    baseline: str | None = None
    """The method that the win rates are against."""
    rows: list[EvaluatedRow]


class LineageNode(BaseModel):
    """`detail`: role or method of a model, kind of a dataset or run, model of a judge. `evaluation`: the one that a
    campaign or judge is a part of."""

    type: Literal["model", "dataset", "run", "evaluation", "campaign", "judge", "arena"]
    id: uuid.UUID
    name: str
    detail: str
    content_hash: str | None = None
    evaluation: uuid.UUID | None = None


class LineageEdge(BaseModel):
    """`source` went into `target`, in the `role` of model, data, reward, parent, output, rows, rewards; cleaned (some
    rows were left out), answers (of an evaluation, that people ranked or a judge compared), rankings, verdicts, votes
    (of an arena)."""

    source: uuid.UUID
    target: uuid.UUID
    role: str


class Lineage(BaseModel):
    """Everything a model was made from, and what was made from it directly. Nearest first."""

    model: uuid.UUID
    nodes: list[LineageNode]
    edges: list[LineageEdge]
    children: list[LineageNode]
    truncated: bool = Field(description="There is more upstream than is shown.")
