"""Names and ids of datasets and models: what is a valid name, and what a reference in a URL or recipe means."""

from __future__ import annotations

import re
import uuid
from typing import Literal

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.runs.tables import Pipeline, Run, RunOutput
from steerboard_contracts.errors import BadInput

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def check_name(name: str) -> str:
    """The name itself. Raises `BadInput` (`invalid_name`)."""
    if not NAME.fullmatch(name):
        raise BadInput(
            f"{name!r} cannot be a name",
            code="invalid_name",
            hint="Use letters, digits, '.', '_' and '-', starting with a letter or digit; at most 128 characters.",
        )
    return name


def as_id(ref: str | uuid.UUID) -> uuid.UUID | None:
    """The id that a reference is, if it is one."""
    if isinstance(ref, uuid.UUID):
        return ref
    try:
        return uuid.UUID(ref) if len(ref) == 36 else None
    except ValueError:
        return None


def stage_output(
    session: Session, project_id: uuid.UUID, ref: str, what: Literal["dataset", "model"]
) -> uuid.UUID | None:
    """The dataset or model that `<pipeline>.<stage>` made or reused. Both names may contain dots."""
    column = RunOutput.dataset_id if what == "dataset" else RunOutput.model_id
    for place in (at for at, letter in enumerate(ref) if letter == "."):
        found = session.scalar(
            select(column)
            .select_from(Pipeline)
            .join(Run, Run.pipeline_id == Pipeline.id)
            .join(RunOutput, RunOutput.run_id.in_([Run.id, Run.reused_from_id]))
            .where(
                Pipeline.project_id == project_id,
                Pipeline.name == ref[:place],
                Run.name == ref[place + 1 :],
                column.is_not(None),
            )
            .order_by(Run.id.desc())
            .limit(1)
        )
        if found is not None:
            return found
    return None
