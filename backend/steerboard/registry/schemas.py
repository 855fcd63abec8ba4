"""What the API and the CLI see of models."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Literal

from pydantic import BaseModel, Field

from steerboard_contracts.models import ModelInfo, ModelRole


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
    created_at: dt.datetime


class ModelFile(BaseModel):
    path: str
    sha256: str
    size: int


class ModelDetail(ModelOut):
    files: list[ModelFile]


class LineageNode(BaseModel):
    """`detail`: role or method of a model, kind of a dataset or run."""

    type: Literal["model", "dataset", "run"]
    id: uuid.UUID
    name: str
    detail: str
    content_hash: str | None = None


class LineageEdge(BaseModel):
    """`source` went into `target`; `role` says as what: model, data, reward, parent, output, rows, rewards."""

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
