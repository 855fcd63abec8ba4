"""A page of the list of runs: filtered, sorted, and read on from where the last page ended."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import uuid
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.marks.service import is_archived
from steerboard.platform.filters.parser import parse
from steerboard.platform.http.errors import InvalidRequest
from steerboard.platform.row_sizes import ROWS_AT_ONCE, take_while_small
from steerboard.runs.listing.conditions import Asker, Condition, Conditions, mentions_archive
from steerboard.runs.listing.order import NEWEST, Stretch, stretches
from steerboard.runs.tables import Run
from steerboard_contracts.run_kinds import UNLISTED


@dataclass(frozen=True)
class RunsQuery:
    """`only`: conditions besides the filter."""

    filter: str = ""
    sort: str = NEWEST
    only: tuple[Condition, ...] = ()
    every_kind: bool = False


@dataclass(frozen=True)
class _Place:
    """Behind which run the next page begins: in which stretch of the list, its value there, its id."""

    stretch: int
    value: Any
    id: uuid.UUID


def runs_page(
    session: Session, project: Project, owner: str, query: RunsQuery, *, cursor: str | None, limit: int
) -> tuple[list[Run], str | None]:
    """Runs, and the cursor of the page behind them. Archived ones are left out unless the filter has `is:archived`.

    Raises `BadFilter`, `InvalidRequest` (`bad_cursor`).
    """
    parts = _stretches(session, project, owner, query)
    place = _decoded(cursor, query.sort, parts) if cursor is not None else None
    with closing(_rows(session, parts, place, limit + 1)) as stream:
        rows, more = take_while_small(stream, limit)
    following = None
    if more:
        number, run, value = rows[-1]
        following = _encoded(query.sort, number, value, run.id)
    return [run for _, run, _ in rows], following


def _stretches(session: Session, project: Project, owner: str, query: RunsQuery) -> list[Stretch]:
    runs = select(Run).where(Run.project_id == project.id, Run.parent_id.is_(None), *query.only)
    if not query.every_kind:
        runs = runs.where(Run.kind != UNLISTED)
    expression = parse(query.filter)
    conditions = Conditions(session, project.id, Asker(owner, session.scalars(select(func.now())).one()))
    if expression is not None:
        runs = runs.where(conditions.of(expression))
        # Ids that fit into memory are hashed; otherwise they are gone through for each run.
        session.execute(text("SET LOCAL work_mem = '64MB'"))
    if not mentions_archive(expression):
        runs = runs.where(~is_archived(Run.id))
    return stretches(conditions.fields, query.sort, runs)


def _rows(
    session: Session, parts: Sequence[Stretch], place: _Place | None, most: int
) -> Generator[tuple[int, Run, Any]]:
    yielded = 0
    for number, part in enumerate(parts):
        if place is not None and number < place.stretch:
            continue
        last = (place.value, place.id) if place is not None and number == place.stretch else None
        statement = part.after(last).limit(most - yielded).execution_options(yield_per=ROWS_AT_ONCE)
        with closing(session.execute(statement)) as rows:
            for row in rows:
                yielded += 1
                yield number, row[0], row[1] if part.value is not None else None
        if yielded >= most:
            return


def _encoded(sort: str, stretch: int, value: Any, id_: uuid.UUID) -> str:
    plain = value.total_seconds() if isinstance(value, dt.timedelta) else value
    return base64.urlsafe_b64encode(orjson.dumps([sort, stretch, plain, id_])).decode().rstrip("=")


def _decoded(cursor: str, sort: str, parts: Sequence[Stretch]) -> _Place:
    """Raises `InvalidRequest` (`bad_cursor`), also for a cursor of another sort."""
    try:
        of, stretch, value, id_ = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        if of != sort or not isinstance(stretch, int) or not 0 <= stretch < len(parts):
            raise ValueError("of another list")
        if not isinstance(value, int | float | str | None):
            raise ValueError("no value")
        place = _Place(stretch, value, uuid.UUID(id_))
        parts[stretch].after((place.value, place.id))
        return place
    except (ValueError, TypeError, AttributeError, binascii.Error):
        raise InvalidRequest(
            "the cursor is not one of this list", code="bad_cursor", hint="Use `next` of the previous page unchanged."
        ) from None
