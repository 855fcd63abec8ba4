"""How a process of a server begins: its settings are safe, its database answers and has the schema of this code.

Containers of one deployment start in any order, so each waits a little for what it needs, then reports what is missing.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable

import redis
from sqlalchemy import create_engine
from sqlalchemy.exc import ArgumentError, OperationalError
from sqlalchemy.pool import NullPool

from steerboard.platform import migrations
from steerboard.platform.events.redis_url import connect
from steerboard.platform.security import production
from steerboard.platform.settings import BadSetting, Settings
from steerboard_contracts.errors import ErrorLocation, SteerboardError

log = logging.getLogger("steerboard.start")

_PAUSE_SECONDS = 0.5


class DatabaseUnreachable(SteerboardError):
    """The database did not answer within `STEERBOARD_START_SECONDS`, or went away during a command."""

    code = "database_unreachable"
    title = "The database does not answer"
    status = 503


class SchemaNotReady(SteerboardError):
    """No one migrated the database within `STEERBOARD_START_SECONDS`."""

    code = "schema_not_ready"
    title = "The database is not migrated"
    status = 503


def require(settings: Settings) -> None:
    """What every process of a server needs, wherever it runs. Raises `MissingSetting` and `UnsafeSetting`."""
    production.check(settings)
    missing = [name for name in ("database_url", "redis_url") if not getattr(settings, name)]
    if missing:
        raise production.MissingSetting(
            "this process needs external servers, and their addresses are not set",
            errors=[ErrorLocation(location=f"STEERBOARD_{name.upper()}", message="is not set") for name in missing],
            hint="Set them, or let `steerboard up` start everything on this machine.",
        )


def wait_for_database(settings: Settings, *, migrated: bool = True) -> None:
    """Waits until it answers and, unless not `migrated`, has the schema of this code.

    Raises `DatabaseUnreachable` or `SchemaNotReady` when that takes longer than `start_seconds`, `UnusableDatabase` at
    once for a newer schema, `BadSetting` for a URL that cannot be one.
    """
    try:
        engine = create_engine(settings.database_url, poolclass=NullPool, connect_args={"connect_timeout": 5})
    except (ArgumentError, ModuleNotFoundError):
        raise BadSetting("STEERBOARD_DATABASE_URL is not the URL of a PostgreSQL database.") from None

    def look() -> SteerboardError | None:
        try:
            with engine.connect() as connection:
                if migrated and migrations.missing_revisions(connection):
                    hint = "`steerboard migrate` does it, or `steerboard up`; compose and the chart run it as a job."
                    return SchemaNotReady("the database does not have this version's schema yet", hint=hint)
        except OperationalError as error:
            return unreachable(error)
        return None

    fault = _retried(look, settings.start_seconds)
    if fault is not None:
        raise fault


def unreachable(error: Exception) -> DatabaseUnreachable:
    """The driver's error, or SQLAlchemy's around it, on one line."""
    reason = " ".join(str(getattr(error, "orig", error)).split())
    return DatabaseUnreachable(reason, hint="Start it, or correct STEERBOARD_DATABASE_URL.")


def wait_for_redis(settings: Settings) -> None:
    """Waits for `start_seconds` at most, then the process continues: without Redis nothing is lost and wake-ups come
    later. Raises `BadSetting` for a URL that cannot be one, or credentials that are refused."""

    def look() -> SteerboardError | None:
        try:
            with connect(settings.redis_url) as client:
                client.ping()
        except ValueError:
            raise BadSetting("STEERBOARD_REDIS_URL is not the URL of a Redis server.") from None
        except redis.AuthenticationError as error:
            raise BadSetting(f"STEERBOARD_REDIS_URL: the server refuses its credentials: {error}") from None
        except redis.RedisError as error:
            return SteerboardError(f"Redis does not answer: {error}")
        return None

    fault = _retried(look, settings.start_seconds)
    if fault is not None:
        log.error("%s; continuing without wake-ups until it does", fault)


def _retried(look: Callable[[], SteerboardError | None], seconds: float) -> SteerboardError | None:
    deadline = time.monotonic() + seconds
    logged = False
    while (fault := look()) is not None and time.monotonic() < deadline:
        if not logged:
            log.warning("%s; waiting up to %g s for it", fault.detail, seconds)
            logged = True
        time.sleep(_PAUSE_SECONDS)
    return fault


def refused(error: OSError) -> SteerboardError:
    """What the operating system refused, for people."""
    what = f"{error.filename}: " if error.filename else ""
    return SteerboardError(
        f"the system refused it: {what}{error.strerror or error}",
        code="system_error",
        hint="Run `steerboard doctor`.",
    )


def run_reported(main: Callable[[], None]) -> int:
    """Exit status of a process whose expected failures are one message, never a traceback."""
    try:
        main()
    except SteerboardError as error:
        print(f"error: {error} [{error.code}]", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {refused(error)} [{refused(error).code}]", file=sys.stderr)
        return 1
    return 0
