"""Tags, notes, archive and favourites of runs, pipelines, models, datasets and evaluations over HTTP."""

from __future__ import annotations

import uuid
from typing import Annotated

from fastapi import Depends, Query

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.insights.marked_things import marked_thing
from steerboard.marks import service
from steerboard.marks.schemas import ItemType, Marks, MarksChange, TagCount
from steerboard.platform.http.errors import problems
from steerboard.runs.facts.recording import note_words

router = Router(prefix="/marks", tags=["marks"])

Reader = Annotated[Access, Depends(AccessTo("read"))]
Writer = Annotated[Access, Depends(AccessTo("write"))]

_MOST_IDS = 500


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
    id_, _ = marked_thing(session, access.project, type, item)
    return service.marks_of(session, access.owner, [id_], html=True)[id_]


@router.patch("/{type}/{item}", responses=problems(404, 422))
def change_marks(type: ItemType, item: str, body: MarksChange, session: Db, access: Writer) -> Marks:
    """Change tags, write notes in Markdown, archive a thing or take it back."""
    id_, name = marked_thing(session, access.project, type, item)
    changed = service.change(session, access, type, id_, body)
    if type == "run":
        note_words(session, id_)
    audit(session, access, f"{type}.mark", f"{type} {name} {id_}", body.model_dump(exclude_unset=True))
    return changed


@router.put("/{type}/{item}/favourite", status_code=204, responses=problems(404))
def add_favourite(type: ItemType, item: str, session: Db, access: Reader) -> None:
    """Make a thing a favourite of the one who asks; no one else sees it."""
    service.set_favourite(session, access, type, marked_thing(session, access.project, type, item)[0], True)


@router.delete("/{type}/{item}/favourite", status_code=204, responses=problems(404))
def remove_favourite(type: ItemType, item: str, session: Db, access: Reader) -> None:
    """Take a thing from the favourites of the one who asks."""
    service.set_favourite(session, access, type, marked_thing(session, access.project, type, item)[0], False)
