"""Fixtures of evaluations as rows, in a database that many tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool

from steerboard.accounts import service as accounts
from steerboard.accounts.tables import Project
from steerboard.platform.database import make_engine, make_sessions, new_id, transaction
from support.rows.evaluation_rows import Evaluated


@pytest.fixture(scope="session")
def shared(servers: Any) -> Iterator[Engine]:
    """One database for all tests that only read what they wrote themselves."""
    name = f"{servers.template}_{new_id().hex[-8:]}"
    admin = create_engine(servers.admin_url, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name} TEMPLATE {servers.template}"))
    engine = make_engine(servers.url_of(name))
    yield engine
    engine.dispose()
    with admin.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture
def evaluated(shared: Engine) -> Callable[..., Evaluated]:
    """Makes evaluations in a project of the test's own: `evaluated(prompts=12, turns=2)`."""
    sessions = make_sessions(shared)
    with transaction(sessions) as session:
        accounts.ensure_default(session, held_out_fraction=0.1)
        project = Project(name=f"project-{new_id().hex}", split_salt="salt", held_out_fraction=0.1)
        session.add(project)

    def make(**given: Any) -> Evaluated:
        return Evaluated(sessions, project, **given)

    return make
