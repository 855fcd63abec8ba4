"""The ORM base and the session. One transaction a request or task; service code never commits."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import orjson
import psycopg
import uuid_utils
from psycopg.abc import RV, PQGen
from sqlalchemy import (
    BigInteger,
    DateTime,
    Dialect,
    Engine,
    MetaData,
    TypeDecorator,
    create_engine,
    event,
    func,
    make_url,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID
from sqlalchemy.orm import DeclarativeBase, Session, mapped_column, sessionmaker

from steerboard_contracts.conditions.condition import Condition


def new_id() -> uuid.UUID:
    """UUIDv7: sorts by creation time, so keyset pagination by id is by age."""
    return uuid.UUID(int=uuid_utils.uuid7().int)


Id = Annotated[uuid.UUID, mapped_column(UUID(as_uuid=True), primary_key=True, default=new_id)]
Timestamp = Annotated[dt.datetime, mapped_column(DateTime(timezone=True))]
CreatedAt = Annotated[dt.datetime, mapped_column(DateTime(timezone=True), server_default=func.clock_timestamp())]
Json = Annotated[dict[str, Any], mapped_column(JSONB)]
BigInt = Annotated[int, mapped_column(BigInteger)]


class ConditionType(TypeDecorator[Condition]):
    """JSON of a condition: a number for a score, a text for several attributes, whose order an object would lose."""

    impl = JSONB(none_as_null=True)
    cache_ok = True

    def process_bind_param(self, value: Condition | None, dialect: Dialect) -> float | str | None:
        return None if value is None else value.plain()

    def process_result_value(self, value: Any, dialect: Dialect) -> Condition | None:
        return None if value is None else Condition.model_validate(value)


ConditionValue = Annotated[Condition, mapped_column(ConditionType)]


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


# A database that has vanished from the network is noticed within seconds, not after the kernel's quarter of an hour.
_NETWORK = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "2",
    "tcp_user_timeout": "15000",
}


class PatientConnection(psycopg.Connection[Any]):
    """Gives up, and closes itself, when the server has not responded for `patience` seconds.

    The network's own limits do not see a connection that something on the way still acknowledges and no one answers.
    """

    patience: float | None = None

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        try:
            return super().wait(gen, interval, self.patience if timeout is None else timeout)
        except psycopg.OperationalError as error:
            if self.pgconn.transaction_status != psycopg.pq.TransactionStatus.ACTIVE or timeout is not None:
                raise
            self.pgconn.finish()
            raise psycopg.OperationalError(f"the database has not responded for {self.patience:g} seconds") from error


def make_engine(url: str, pool_size: int = 10) -> Engine:
    """`url` is a SQLAlchemy URL of the psycopg driver."""
    parsed = make_url(url)
    return create_engine(
        parsed.update_query_dict({name: value for name, value in _NETWORK.items() if name not in parsed.query}),
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_pre_ping=True,
        json_serializer=lambda value: orjson.dumps(value).decode(),
        json_deserializer=orjson.loads,
    )


def make_lease_engine(url: str, lease_seconds: float, *, pool_size: int, patience: float) -> Engine:
    """An engine for a process that holds leases. `patience`: of each statement, in seconds (`patiently` gives more).

    The server ends a transaction in which this process falls silent: a frozen one would keep its run's row locked, and
    no one could take the run over.
    """
    engine = make_engine(url, pool_size)
    silence = max(1000, round(2000 * lease_seconds))

    def connect(_dialect: object, _record: object, arguments: Any, options: Any) -> PatientConnection:
        connection = PatientConnection.connect(*arguments, **options)
        connection.patience = patience
        connection.execute(f"SET idle_in_transaction_session_timeout = {silence}".encode())
        connection.commit()
        return connection

    event.listen(engine, "do_connect", connect)
    return engine


@contextmanager
def patiently(session: Session, seconds: float) -> Iterator[None]:
    """Statements inside of it may take so long, whatever the patience of the connection is."""
    connection = session.connection().connection.driver_connection
    before = connection.patience if isinstance(connection, PatientConnection) else None
    if not isinstance(connection, PatientConnection) or before is None:
        yield
        return
    connection.patience = max(before, seconds)
    try:
        yield
    finally:
        connection.patience = before


def make_sessions(engine: Engine) -> sessionmaker[Session]:
    return sessionmaker(engine, expire_on_commit=False)


@contextmanager
def transaction(sessions: sessionmaker[Session]) -> Iterator[Session]:
    """Commit at the end, roll back on any error."""
    with sessions() as session, session.begin():
        yield session
