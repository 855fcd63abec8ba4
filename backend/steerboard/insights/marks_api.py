"""Tags, notes, archive and favourites of runs, pipelines, models, datasets and evaluations over HTTP."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, Query
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.accounts.tables import Project
from steerboard.datasets.lookup import get_dataset
from steerboard.evaluation.lookup import get_evaluation
from steerboard.marks import service
from steerboard.marks.schemas import ItemType, Marks, MarksChange, TagCount
from steerboard.platform.http.errors import problems
from steerboard.registry.service import get_model
from steerboard.runs.facts.recording import note_words
from steerboard.runs.pipelines.service import get_pipeline
from steerboard.runs.queries import get_run

router = Router(prefix="/marks", tags=["marks"])

Reader = Annotated[Access, Depends(AccessTo("read"))]
Writer = Annotated[Access, Depends(AccessTo("write"))]

_MOST_IDS = 500


def _resolve(session: Session, project: Project, type_: ItemType, ref: str) -> tuple[uuid.UUID, str]:
    """Id and name. Raises `NotFound`."""
    finders: dict[str, Callable[[Session, Project, str], Any]] = {
        "run": get_run,
        "pipeline": get_pipeline,
        "model": get_model,
        "dataset": get_dataset,
        "evaluation": get_evaluation,
    }
    thing = finders[type_](session, project, ref)
    return thing.id, thing.name


@router.get("/{type}", responses=problems(404, 422))
def list_marks(
    type: ItemType,
    session: Db,
    access: Reader,
    id: Annotated[list[uuid.UUID], Query(max_length=_MOST_IDS, description="Whose marks are wanted.")] = [],  # noqa: B006
) -> dict[uuid.UUID, Marks]:
    """The marks of things by id, without their notes as HTML."""
    return service.marks_of_project(session, access, type, id)


@router.get("/{type}/tags", responses=problems(404))
def list_tags(type: ItemType, session: Db, access: Reader) -> list[TagCount]:
    """The tags that things of the type have, the most frequent first."""
    return service.tags_of(session, access.project, type)


@router.get("/{type}/{item}", responses=problems(404))
def get_marks(type: ItemType, item: str, session: Db, access: Reader) -> Marks:
    """The marks of one thing, by its id or name."""
    id_, _ = _resolve(session, access.project, type, item)
    return service.marks_of(session, access.owner, [id_], html=True)[id_]


@router.patch("/{type}/{item}", responses=problems(404, 422))
def change_marks(type: ItemType, item: str, body: MarksChange, session: Db, access: Writer) -> Marks:
    """Change tags, write notes in Markdown, archive a thing or take it back."""
    id_, name = _resolve(session, access.project, type, item)
    changed = service.change(session, access, type, id_, body)
    if type == "run":
        note_words(session, id_)
    audit(session, access, f"{type}.mark", f"{type} {name} {id_}", body.model_dump(exclude_unset=True))
    return changed


@router.put("/{type}/{item}/favourite", status_code=204, responses=problems(404))
def add_favourite(type: ItemType, item: str, session: Db, access: Reader) -> None:
    """Make a thing a favourite of the one who asks; no one else sees it."""
    service.set_favourite(session, access, type, _resolve(session, access.project, type, item)[0], True)


@router.delete("/{type}/{item}/favourite", status_code=204, responses=problems(404))
def remove_favourite(type: ItemType, item: str, session: Db, access: Reader) -> None:
    """Take a thing from the favourites of the one who asks."""
    service.set_favourite(session, access, type, _resolve(session, access.project, type, item)[0], False)
