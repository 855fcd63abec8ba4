"""Tables as the database's own catalogue lists them, so a backup holds all of them, whichever version made them.

Why no pg_dump lists them instead: see `backup`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import psycopg
from sqlalchemy import Connection, text

VERSION_TABLE = "alembic_version"


@dataclass(frozen=True)
class ForeignKey:
    """`definition` as PostgreSQL writes it: FOREIGN KEY (...) REFERENCES ..."""

    table: str
    name: str
    definition: str


def tables(connection: Connection) -> dict[str, list[str]]:
    """The columns of every table but Alembic's, without those that the database computes."""
    rows = connection.execute(
        text(
            "SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
            " WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relname != :version"
            " AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY c.relname, a.attnum"
        ),
        {"version": VERSION_TABLE},
    )
    by_table: dict[str, list[str]] = {}
    for table, column in rows:
        by_table.setdefault(table, []).append(column)
    return by_table


def foreign_keys(connection: Connection) -> list[ForeignKey]:
    rows = connection.execute(
        text(
            "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE connamespace = current_schema()::regnamespace AND contype = 'f' ORDER BY 1, 2"
        )
    )
    return [ForeignKey(*row) for row in rows]


def references_to(connection: Connection, table: str, column: str) -> list[tuple[str, str]]:
    """(table, column) of every foreign key to this column, by the catalogue: also those of tables yet to come."""
    rows = connection.execute(
        text(
            "SELECT k.conrelid::regclass::text, mine.attname FROM pg_constraint k"
            " JOIN pg_attribute mine ON mine.attrelid = k.conrelid AND mine.attnum = k.conkey[1]"
            " JOIN pg_attribute theirs ON theirs.attrelid = k.confrelid AND theirs.attnum = k.confkey[1]"
            " WHERE k.contype = 'f' AND k.confrelid = to_regclass(:table) AND theirs.attname = :column ORDER BY 1, 2"
        ),
        {"table": table, "column": column},
    )
    return [(table, column) for table, column in rows]


def sequences(connection: Connection) -> dict[str, int]:
    """The last value of every sequence that has given one."""
    rows = connection.execute(
        text(
            "SELECT sequencename, last_value FROM pg_sequences"
            " WHERE schemaname = current_schema() AND last_value IS NOT NULL ORDER BY 1"
        )
    )
    return {row.sequencename: row.last_value for row in rows}


def driver(connection: Connection) -> psycopg.Connection[Any]:
    """The driver's own connection, in the same transaction: for COPY."""
    return cast("psycopg.Connection[Any]", connection.connection.driver_connection)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
