"""A row in every table of a database, made from the database's own catalogue, whatever its revision."""

from __future__ import annotations

import datetime as dt
import json
import re
import uuid
from typing import Any

from sqlalchemy import Column, Connection, MetaData, Table, func, inspect, select
from sqlalchemy.dialects import postgresql as pg

Row = tuple[Any, ...]


def fill(connection: Connection) -> None:
    """One row for each table that has none."""
    metadata = _reflected(connection)
    for table in metadata.sorted_tables:
        if connection.scalar(select(func.count()).select_from(table)):
            continue
        allowed = _allowed(connection, table)
        row = {column.name: _value(connection, column, allowed) for column in table.columns if _is_needed(column)}
        connection.execute(table.insert().values(row))


def rows_by_table(connection: Connection) -> dict[str, list[dict[str, Any]]]:
    """All rows, as dictionaries, of all tables but Alembic's own."""
    return {
        table.name: [dict(row) for row in connection.execute(select(table)).mappings()]
        for table in _reflected(connection).sorted_tables
    }


def _reflected(connection: Connection) -> MetaData:
    metadata = MetaData()
    metadata.reflect(connection)
    metadata.remove(metadata.tables["alembic_version"])
    return metadata


def _allowed(connection: Connection, table: Table) -> dict[str, Any]:
    """The first value of each column that a check constraint lists values for; of two that must differ, the second is
    not the number that all others are, and of two of which one is greater, that one."""
    checks = [str(check["sqltext"]) for check in inspect(connection).get_check_constraints(table.name)]
    lists = (re.search(r"\(?(\w+)\)?(?:::text)? = ANY .*?\['?(\w+)'?", check) for check in checks)
    different = (re.fullmatch(r"\w+ <> (\w+)", check) for check in checks)
    greater = (re.fullmatch(r'"?([a-z_]+)"? > "?[a-z_]+"?', check) for check in checks)
    unlike = {match[1]: 2 for pairs in (different, greater) for match in pairs if match}
    return {match[1]: match[2] for match in lists if match} | unlike


def _is_needed(column: Column[Any]) -> bool:
    """Columns that must be given, and the source of a run's input and the page of a link, of which there has to be
    one."""
    given_by_the_database = column.server_default is not None or column.identity is not None
    return (not column.nullable and not given_by_the_database) or column.name in ("upstream_run_id", "page")


def _value(connection: Connection, column: Column[Any], allowed: dict[str, str]) -> Any:
    if column.name in allowed:
        return allowed[column.name]
    for key in column.foreign_keys:
        return connection.scalar(select(key.column).limit(1))
    return _of_type(column.type)


def _of_type(type_: Any) -> Any:
    match type_:
        case pg.JSONB() | pg.JSON():
            return {"kept": True}
        case pg.ARRAY():
            # Two: the entrants of a battle are at least as many.
            return [_of_type(type_.item_type)] * 2
        case pg.BYTEA():
            return b"kept"
        case pg.UUID():
            return uuid.uuid4()
        case pg.TIMESTAMP():
            return dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
        case pg.BOOLEAN():
            return True
        case pg.TEXT() | pg.VARCHAR():
            return json.dumps("kept")
        case _:
            return 1
