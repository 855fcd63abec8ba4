"""Named views of lists: what a list shows, kept by a project for everyone in it. Callers own the transaction."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel
from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from steerboard.accounts.access import Access
from steerboard.accounts.tables import Project
from steerboard.marks.tables import SavedView
from steerboard.platform.http.errors import Conflict, NotFound
from steerboard.platform.names import check_name

ViewedList = Literal["runs", "samples"]
MOST_VIEWS = 200


def views_of(session: Session, project: Project, list_: ViewedList) -> list[SavedView]:
    """The views by name."""
    conditions = SavedView.project_id == project.id, SavedView.list == list_
    return list(session.scalars(select(SavedView).where(*conditions).order_by(SavedView.name)))


def keep(session: Session, access: Access, list_: ViewedList, name: str, query: BaseModel) -> SavedView:
    """Make the view, or replace the one of this name. Raises `BadInput` (`invalid_name`), `Conflict`
    (`too_many_views`)."""
    check_name(name)
    conditions = SavedView.project_id == access.project.id, SavedView.list == list_
    others = session.scalars(select(func.count()).where(*conditions, SavedView.name != name)).one()
    if others >= MOST_VIEWS:
        raise Conflict(
            f"a project has at most {MOST_VIEWS} views of {list_}",
            code="too_many_views",
            hint="Delete one that no one uses.",
        )
    new = insert(SavedView).values(
        project_id=access.project.id, list=list_, name=name, query=query.model_dump(), created_by=access.actor
    )
    session.execute(
        new.on_conflict_do_update(index_elements=["project_id", "list", "name"], set_={"query": new.excluded.query})
    )
    kept = select(SavedView).where(*conditions, SavedView.name == name)
    return session.scalars(kept.execution_options(populate_existing=True)).one()


def remove(session: Session, project: Project, list_: ViewedList, name: str) -> None:
    """Raises `NotFound`."""
    conditions = SavedView.project_id == project.id, SavedView.list == list_
    row = session.scalar(select(SavedView).where(*conditions, SavedView.name == name))
    if row is None:
        raise NotFound(f"there is no view `{name}` of {list_}", hint="List the views by GET.")
    session.delete(row)
