from __future__ import annotations

import threading

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, text

from steerboard.platform import migrations
from steerboard.platform.database import make_engine
from steerboard.platform.tables import metadata


def test_the_migrated_database_has_exactly_the_tables_of_the_code(engine: Engine) -> None:
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_several_processes_may_migrate_at_once(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    failures: list[BaseException] = []

    def migrate() -> None:
        own = make_engine(engine.url.render_as_string(hide_password=False))
        try:
            migrations.migrate(own)
        except BaseException as error:
            failures.append(error)
        finally:
            own.dispose()

    threads = [threading.Thread(target=migrate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with engine.connect() as connection:
        assert migrations.current_revision(connection) == migrations.newest_revision()


def test_a_database_of_a_newer_version_is_left_alone(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(migrations.UnusableDatabase, match="9999"):
        migrations.migrate(engine)
