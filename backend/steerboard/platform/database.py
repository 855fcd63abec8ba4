"""The ORM base and the session. One transaction a request or task; service code never commits."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import orjson
import uuid_utils
from sqlalchemy import BigInteger, DateTime, Engine, MetaData, create_engine, func
from sqlalchemy.dialects.postgresql import JSONB, UUID
from sqlalchemy.orm import DeclarativeBase, Session, mapped_column, sessionmaker


def new_id() -> uuid.UUID:
    """UUIDv7: sorts by creation time, so keyset pagination by id is by age."""
    return uuid.UUID(int=uuid_utils.uuid7().int)


Id = Annotated[uuid.UUID, mapped_column(UUID(as_uuid=True), primary_key=True, default=new_id)]
Timestamp = Annotated[dt.datetime, mapped_column(DateTime(timezone=True))]
CreatedAt = Annotated[dt.datetime, mapped_column(DateTime(timezone=True), server_default=func.clock_timestamp())]
Json = Annotated[dict[str, Any], mapped_column(JSONB)]
BigInt = Annotated[int, mapped_column(BigInteger)]


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


def make_engine(url: str, pool_size: int = 10) -> Engine:
    """`url` is a SQLAlchemy URL of the psycopg driver."""
    return create_engine(
        url,
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_pre_ping=True,
        json_serializer=lambda value: orjson.dumps(value).decode(),
        json_deserializer=orjson.loads,
    )


def make_sessions(engine: Engine) -> sessionmaker[Session]:
    return sessionmaker(engine, expire_on_commit=False)


@contextmanager
def transaction(sessions: sessionmaker[Session]) -> Iterator[Session]:
    """Commit at the end, roll back on any error."""
    with sessions() as session, session.begin():
        yield session
