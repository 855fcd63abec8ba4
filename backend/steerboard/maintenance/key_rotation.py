"""`steerboard secrets rotate` and `forget`: every sealed value is opened with a known key, and sealed again.

A new key of the home goes to the top of its file before anything is sealed with it, the older ones stay below it until
`forget`, and all values change in one transaction: killed between any two steps, all of it opens with the keys that the
file has then. Running processes read the file again when it changes; one that was sealing at that very moment is why
`forget` waits, and seals again what it finds.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, text

from steerboard.maintenance import database_catalogue
from steerboard.platform.security.secrets import KEY_FILE, Secrets, SecretUnreadable, new_key, write_key_file
from steerboard.platform.storage.home import open_home
from steerboard_contracts.errors import SteerboardError

_SETTLED_SECONDS = 600.0


class KeysNeeded(SteerboardError):
    """An older key cannot be forgotten yet: something may be sealed with it."""

    code = "keys_needed"
    status = 409
    title = "The older keys are still needed"


@dataclass(frozen=True)
class SealedColumn:
    """`value` is the SQL of the sealed text in `column`, `assignment` that of a new one (`:sealed`)."""

    table: str
    column: str
    value: str
    assignment: str


SEALED = (
    SealedColumn("endpoints", "api_key_sealed", "api_key_sealed", "api_key_sealed = :sealed"),
    SealedColumn("projects", "hub_token_sealed", "hub_token_sealed", "hub_token_sealed = :sealed"),
    SealedColumn("notice_rules", "secret_sealed", "secret_sealed", "secret_sealed = :sealed"),
    SealedColumn("trackers", "secret_sealed", "secret_sealed", "secret_sealed = :sealed"),
    SealedColumn(
        "idempotency_keys",
        "body",
        "body->>'sealed'",
        "body = jsonb_build_object('sealed', CAST(:sealed AS text))",
    ),
)


@dataclass
class Resealed:
    """`unreadable`: sealed with a key that no one gave; they stay as they are."""

    values: int = 0
    unreadable: int = 0


def rotate(engine: Engine, keys: Secrets, home: Path) -> Resealed:
    """A new key for the home, or the one that `STEERBOARD_SECRET_KEY` gives now, and everything sealed with it."""
    with _alone(home):
        if keys.from_file:
            write_key_file(home, "".join(f"{key}\n" for key in [new_key(), *keys.known()]))
        return reseal(engine, keys)


def forget(engine: Engine, keys: Secrets, home: Path) -> Resealed:
    """Remove the older keys from the home's file, after resealing what they still seal. Raises `KeysNeeded`."""
    with _alone(home):
        keys.known()  # there is a key file from here on
        age = time.time() - (home / KEY_FILE).stat().st_mtime if keys.from_file else _SETTLED_SECONDS
        if age < _SETTLED_SECONDS:
            raise KeysNeeded(
                "the key was changed a moment ago, and a process may still be using the old one",
                hint="Wait ten minutes.",
            )
        done = reseal(engine, keys)
        if done.unreadable:
            raise KeysNeeded(
                f"{done.unreadable} stored secrets cannot be opened with any of the keys",
                hint="Give their key as STEERBOARD_SECRET_KEY_PREVIOUS or as a line of the key file, or enter the "
                "secrets again.",
            )
        if keys.from_file:
            write_key_file(home, f"{keys.known()[0]}\n")
        return done


def reseal(engine: Engine, keys: Secrets) -> Resealed:
    """Seal everything with the newest key, all or nothing."""
    done = Resealed()
    with engine.begin() as connection:
        for column in SEALED:
            for id_, sealed in _rows(connection, column):
                try:
                    again = keys.seal(keys.open(sealed))
                except SecretUnreadable:
                    done.unreadable += 1
                    continue
                connection.execute(
                    text(f"UPDATE {column.table} SET {column.assignment} WHERE id = :id"), {"sealed": again, "id": id_}
                )
                done.values += 1
    return done


def count_sealed(connection: Connection) -> int:
    """Counts in a database of an older schema, which may not have all of the columns."""
    tables = database_catalogue.tables(connection)
    return sum(
        connection.execute(text(f"SELECT count(*) FROM {sealed.table} WHERE {sealed.value} IS NOT NULL")).scalar_one()
        for sealed in SEALED
        if sealed.column in tables.get(sealed.table, [])
    )


def _rows(connection: Connection, column: SealedColumn) -> list[tuple[Any, str]]:
    """Locked, so they cannot change between the reading and the writing."""
    statement = f"SELECT id, {column.value} FROM {column.table} WHERE {column.value} IS NOT NULL ORDER BY id FOR UPDATE"
    return [(id_, sealed) for id_, sealed in connection.execute(text(statement))]


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Two rotations at once would each write a file without the other's key."""
    open_home(home)
    with (home / "secret.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
