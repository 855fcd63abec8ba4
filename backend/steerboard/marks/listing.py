"""Lists of named things by their marks: a search over names, tags and notes, tags, the archive."""

from __future__ import annotations

import uuid
from typing import Annotated, Any, TypeVar

from fastapi import Query
from sqlalchemy import Select, exists, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute

from steerboard.accounts.access import Access
from steerboard.marks.schemas import ItemType
from steerboard.marks.service import is_archived
from steerboard.marks.tables import Favourite, ItemMarks
from steerboard.platform.http.paging import name_has

Row = TypeVar("Row")


class MarksFilter:
    """A dependency of endpoints that list things."""

    def __init__(
        self,
        search: Annotated[
            str | None, Query(max_length=200, description="A part of the name, a tag or the notes.")
        ] = None,
        tag: Annotated[list[str], Query(max_length=20, description="Things with all of these tags.")] = [],  # noqa: B006
        favourite: Annotated[bool, Query(description="Only favourites of the one who asks.")] = False,
        archived: Annotated[bool, Query(description="Archived things, instead of the others.")] = False,
    ) -> None:
        self.search = search
        self.tag = tag
        self.favourite = favourite
        self.archived = archived

    def of(
        self,
        statement: Select[Row],
        access: Access,
        table: Any,
        type_: ItemType,
    ) -> Select[Row]:
        """Narrows a statement on `table`, which has the things of `type_`."""
        id_column: InstrumentedAttribute[uuid.UUID] = table.id
        same_item = ItemMarks.item_id == id_column
        if self.search:
            texts = (ItemMarks.notes, func.array_to_string(ItemMarks.tags, "\n"))
            words = or_(*(text.icontains(self.search, autoescape=True) for text in texts))
            marked = select(ItemMarks.item_id).where(
                ItemMarks.project_id == access.project.id, ItemMarks.type == type_, words
            )
            statement = statement.where(or_(name_has(table, self.search), id_column.in_(marked)))
        if self.tag:
            statement = statement.where(exists().where(same_item, ItemMarks.tags.contains(self.tag)))
        if self.favourite:
            chosen = exists().where(Favourite.item_id == id_column, Favourite.owner == access.owner)
            statement = statement.where(chosen)
        archived = is_archived(id_column)
        return statement.where(archived if self.archived else ~archived)
