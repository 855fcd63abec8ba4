"""Exports of models as GGUF files: the run that makes one, and the finished ones."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.platform.http.errors import NotFound
from steerboard.platform.names import next_name_of_all
from steerboard.registry.tables import Artifact, Model
from steerboard.runs.schemas.requests import PoolName
from steerboard.runs.state.lifecycle import InputRef, create_run
from steerboard.runs.tables import Run, RunInput, RunOutput
from steerboard_contracts.errors import BadInput
from steerboard_contracts.files.gguf_export import GgufPrecision, GgufResult
from steerboard_contracts.models import POLICIES
from steerboard_contracts.run_kinds.gguf import GgufConfig

_LISTED = 50


class GgufStart(BaseModel):
    model_config = ConfigDict(extra="forbid")

    precision: GgufPrecision = "f16"
    pool: PoolName = "default"


class GgufFile(BaseModel):
    path: str
    size: int
    sha256: str


class GgufExport(BaseModel):
    """A finished export. `found`: what the comparison with transformers found, in a sentence."""

    run: uuid.UUID
    made_at: Annotated[dt.datetime | None, Field(description="When the run ended.")]
    result: GgufResult
    found: str
    files: list[GgufFile]


def start_gguf(session: Session, project: Project, model: Model, start: GgufStart, actor: str) -> Run:
    """An equal finished export is taken over. Raises `BadInput` (`wrong_role`), `QuotaReached`."""
    if model.role not in POLICIES:
        raise BadInput(
            f"{model.name} is a {model.role} model, which answers no prompts",
            code="wrong_role",
            hint="Name a base, sft or policy model.",
        )
    alone = (Run.project_id == project.id, Run.pipeline_id.is_(None))
    return create_run(
        session,
        project,
        name=next_name_of_all(session, project.id, Run.name, f"gguf-{model.name[:100]}", *alone),
        config=GgufConfig(precision=start.precision),
        inputs={"model": InputRef(model=model.id)},
        pool=start.pool,
        reuse=True,
        created_by=actor,
    )


def gguf_exports(session: Session, model: Model) -> list[GgufExport]:
    """Newest first."""
    rows = session.execute(
        select(Run, RunOutput, Artifact)
        .join(RunInput, RunInput.run_id == Run.id)
        .join(RunOutput, RunOutput.run_id == Run.id)
        .join(Artifact, Artifact.hash == RunOutput.artifact_hash)
        .where(RunInput.model_id == model.id, Run.kind == "gguf", Run.state == "succeeded", RunOutput.type == "gguf")
        .order_by(Run.id.desc())
        .limit(_LISTED)
    )
    return [_export(run, output, artifact) for run, output, artifact in rows]


def _export(run: Run, output: RunOutput, artifact: Artifact) -> GgufExport:
    result = GgufResult.model_validate(output.document)
    files = [GgufFile.model_validate(file, extra="ignore") for file in artifact.manifest["files"]]
    return GgufExport(run=run.id, made_at=run.ended_at, result=result, found=result.words, files=files)


def gguf_file(session: Session, model: Model, run: uuid.UUID, path: str) -> GgufFile:
    """A file of one export. Raises `NotFound`."""
    export = next((export for export in gguf_exports(session, model) if export.run == run), None)
    file = next((file for file in export.files if file.path == path), None) if export else None
    if file is None:
        raise NotFound(
            f"{model.name} has no GGUF export {run} with a file {path!r}",
            hint="Look at models/{model}/gguf.",
        )
    return file
