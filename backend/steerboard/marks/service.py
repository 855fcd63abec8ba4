"""Reading and changing tags, notes, archive and favourites. Callers commit and audit."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence

from sqlalchemy import ColumnElement, delete, exists, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import InstrumentedAttribute, Session

from steerboard.accounts.access import Access
from steerboard.accounts.tables import Project
from steerboard.marks.markdown import as_html
from steerboard.marks.schemas import MOST_TAGS, ItemType, Marks, MarksChange, TagCount
from steerboard.marks.tables import Favourite, ItemComment, ItemMarks
from steerboard_contracts.errors import BadInput


def marks_of(session: Session, owner: str, ids: Collection[uuid.UUID], *, html: bool = False) -> dict[uuid.UUID, Marks]:
    """The marks of every id, also of those without any. `html`: with the notes as HTML."""
    if not ids:
        return {}
    chosen = set(session.scalars(select(Favourite.item_id).where(Favourite.owner == owner, Favourite.item_id.in_(ids))))
    rows = {row.item_id: row for row in session.scalars(select(ItemMarks).where(ItemMarks.item_id.in_(ids)))}
    return {id_: _marks(rows.get(id_), id_ in chosen, html) for id_ in ids}


def _marks(row: ItemMarks | None, favourite: bool, html: bool) -> Marks:
    if row is None:
        return Marks(favourite=favourite)
    return Marks(
        tags=row.tags,
        notes=row.notes,
        notes_html=as_html(row.notes) if html and row.notes else "",
        favourite=favourite,
        archived_at=row.archived_at,
        archived_by=row.archived_by,
    )


def marks_of_project(
    session: Session, access: Access, type_: ItemType, ids: Collection[uuid.UUID]
) -> dict[uuid.UUID, Marks]:
    """The same, of the project's things of the type alone: others seem to have none."""
    in_project = select(ItemMarks.item_id).where(
        ItemMarks.project_id == access.project.id, ItemMarks.type == type_, ItemMarks.item_id.in_(ids)
    )
    known = marks_of(session, access.owner, [*session.scalars(in_project)])
    others = marks_of(session, access.owner, [id_ for id_ in ids if id_ not in known])
    return known | {id_: Marks(favourite=marks.favourite) for id_, marks in others.items()}


def change(session: Session, access: Access, type_: ItemType, item_id: uuid.UUID, given: MarksChange) -> Marks:
    """Raises `BadInput` (`too_many_tags`)."""
    new = insert(ItemMarks).values(item_id=item_id, project_id=access.project.id, type=type_, tags=[], notes="")
    session.execute(new.on_conflict_do_nothing())
    row = session.scalars(
        select(ItemMarks)
        .where(ItemMarks.item_id == item_id)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).one()
    tags = list(row.tags if given.tags is None else given.tags)
    tags = [tag for tag in dict.fromkeys([*tags, *given.add_tags]) if tag not in given.remove_tags]
    if len(tags) > MOST_TAGS:
        raise BadInput(f"a {type_} has at most {MOST_TAGS} tags", code="too_many_tags", hint="Remove some first.")
    row.tags = tags
    if given.notes is not None:
        row.notes = given.notes
    if given.archived is not None and given.archived != (row.archived_at is not None):
        row.archived_at = func.clock_timestamp() if given.archived else None
        row.archived_by = access.actor if given.archived else None
    session.flush()
    session.refresh(row)
    return marks_of(session, access.owner, [item_id], html=True)[item_id]


def set_favourite(session: Session, access: Access, type_: ItemType, item_id: uuid.UUID, on: bool) -> None:
    if on:
        row = {"owner": access.owner, "item_id": item_id, "project_id": access.project.id, "type": type_}
        session.execute(insert(Favourite).values(row).on_conflict_do_nothing())
    else:
        session.execute(delete(Favourite).where(Favourite.owner == access.owner, Favourite.item_id == item_id))


def forget(session: Session, ids: Sequence[uuid.UUID]) -> None:
    """Forget the marks of things that are deleted."""
    session.execute(delete(ItemMarks).where(ItemMarks.item_id.in_(ids)))
    session.execute(delete(ItemComment).where(ItemComment.item_id.in_(ids)))
    session.execute(delete(Favourite).where(Favourite.item_id.in_(ids)))


def tags_of(session: Session, project: Project, type_: ItemType) -> list[TagCount]:
    """Every tag that a thing of the type has, the most frequent first."""
    tag = func.unnest(ItemMarks.tags).label("tag")
    each = select(tag).where(ItemMarks.project_id == project.id, ItemMarks.type == type_).subquery()
    rows = session.execute(
        select(each.c.tag, func.count()).group_by(each.c.tag).order_by(func.count().desc(), each.c.tag).limit(500)
    )
    return [TagCount(tag=name, count=count) for name, count in rows]


def is_archived(id_column: InstrumentedAttribute[uuid.UUID]) -> ColumnElement[bool]:
    return exists().where(ItemMarks.item_id == id_column, ItemMarks.archived_at.is_not(None))
