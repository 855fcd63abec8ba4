"""Things of a project that people mark and comment on, found by a type and a name or id."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.lookup import get_dataset
from steerboard.evaluation.lookup import get_evaluation
from steerboard.registry.service import get_model
from steerboard.runs.pipelines.service import get_pipeline
from steerboard.runs.queries import get_run

_FINDERS: dict[str, Callable[[Session, Project, str], Any]] = {
    "run": get_run,
    "pipeline": get_pipeline,
    "model": get_model,
    "dataset": get_dataset,
    "evaluation": get_evaluation,
}


def marked_thing(session: Session, project: Project, type_: str, ref: str) -> tuple[uuid.UUID, str]:
    """Id and name, by id or name. `type_`: an `ItemType`. Raises `NotFound`."""
    thing = _FINDERS[type_](session, project, ref)
    return thing.id, thing.name
