"""Restoring writes nothing but a whole backup into an empty place, whatever happens to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from maintenance_world import API_KEY, Place, rows_of, schema_of
from sqlalchemy import Connection, text
from sqlalchemy.orm import Session

from steerboard.maintenance import manifest
from steerboard.maintenance.errors import BadBackup, NotEmpty
from steerboard.maintenance.restore import restore
from steerboard.platform import migrations
from steerboard.platform.database import new_id
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import CorruptArtifact
from steerboard.platform.storage.from_url import open_storage
from steerboard.registry.endpoints.service import key_of
from steerboard.registry.tables import Endpoint

ROWS_OF_0001 = (
    "INSERT INTO projects (id, name, split_salt, held_out_fraction) VALUES (gen_random_uuid(), 'old', 'salt', 0.1)",
    "INSERT INTO datasets (id, project_id, name, kind, rows, held_out_rows, content_hash, origin)"
    " SELECT gen_random_uuid(), id, 'rows', 'prompts', 2, 0, 'hash', '{}' FROM projects",
    "INSERT INTO samples (dataset_id, row, prompt_hash, held_out, sample)"
    " SELECT id, n, n, false, '{}' FROM datasets, generate_series(0, 1) n",
)


def test_a_database_with_anything_in_it_is_refused_also_if_it_came_meanwhile(place: Place) -> None:
    place.back_up()

    def fill(_: str) -> None:
        """A `steerboard up` begins on the same database once the backup is verified."""
        migrations.migrate(place.empty)

    with pytest.raises(NotEmpty):
        restore(place.empty, place.store, open_storage(place.dest), home=place.home, say=fill)
    before = rows_of(place.empty)
    assert before["projects"] == []
    with pytest.raises(NotEmpty):
        restore(place.empty, place.store, open_storage(place.dest), home=place.home, say=pytest.fail)
    assert rows_of(place.empty) == before


def test_a_damaged_backup_is_refused_before_anything_is_written(place: Place) -> None:
    made = place.back_up()
    own = Path(place.dest) / "backups" / made.manifest.name
    blob = next(path for path in (Path(place.dest) / "blobs").rglob("*") if path.is_file())
    for path in (own / "tables" / "runs.gz", own / "manifest.json", blob):
        content = path.read_bytes()
        middle = len(content) // 2
        for damaged in (content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :], content[:-1], None):
            if damaged is None:
                path.unlink()
            else:
                path.write_bytes(damaged)
            with pytest.raises(BadBackup):
                place.restore()
        path.write_bytes(content)
    with place.empty.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")).scalar_one() == 0
    assert not list(place.world.folder.joinpath("other-artifacts").rglob("*"))


def test_a_restore_that_was_killed_leaves_an_empty_database_and_the_next_one_works(place: Place) -> None:
    """The kill comes at the very last step, with the files and the key in place and every row copied."""
    place.back_up(keys=place.world.secrets)
    code = (
        "import os, sys; from pathlib import Path; from sqlalchemy import create_engine\n"
        "from steerboard.maintenance.restore import restore; from steerboard.platform import migrations\n"
        "from steerboard.platform.storage.artifacts import ArtifactStore\n"
        "from steerboard.platform.storage.from_url import open_storage; upgrade = migrations.upgrade\n"
        "def kill(connection, revision):\n"
        "    os.kill(os.getpid(), 9) if revision == 'head' else upgrade(connection, revision)\n"
        "migrations.upgrade = kill; url, artifacts, source, home = sys.argv[1:]\n"
        "restore(create_engine(url), ArtifactStore(artifacts), open_storage(source), home=Path(home))"
    )
    url = place.empty.url.render_as_string(hide_password=False)
    command = [sys.executable, "-c", code, url, place.store.url, place.dest, str(place.home)]
    assert subprocess.run(command).returncode == -9
    assert (place.home / "secret.key").exists()
    place.restore()
    assert rows_of(place.empty) == rows_of(place.engine)


def test_a_backup_of_an_older_schema_is_brought_to_this_one_with_its_rows(place: Place) -> None:
    """The result is that of updating the original where it was: migrations also work on the rows that they find."""
    with place.engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
        migrations.upgrade(connection, "0001")
        for statement in ROWS_OF_0001:
            connection.execute(text(statement))
    assert place.back_up().manifest.revision == "0001"
    place.restore()
    migrations.migrate(place.engine)
    assert rows_of(place.empty) == rows_of(place.engine)
    assert schema_of(place.empty) == schema_of(place.engine)
    with place.empty.connect() as connection:
        assert migrations.current_revision(connection) == migrations.newest_revision()
        assert connection.execute(text("SELECT name FROM projects")).scalars().all() == ["old"]
        # What a later migration counts for the search.
        assert connection.execute(text("SELECT rows FROM search_segments")).scalars().all() == [2]


def test_rows_that_a_migration_makes_give_way_to_those_of_the_backup(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.back_up()
    upgrade = migrations.upgrade

    def upgrade_with_rows(connection: Connection, revision: str) -> None:
        upgrade(connection, revision)
        if revision != "head":
            statement = "INSERT INTO projects (id, name, split_salt, held_out_fraction) VALUES (:id, :name, 's', 0.1)"
            for name in ("default", "of a migration"):
                connection.execute(text(statement), {"id": new_id(), "name": name})

    monkeypatch.setattr(migrations, "upgrade", upgrade_with_rows)
    place.restore()
    assert rows_of(place.empty) == rows_of(place.engine)


def test_secrets_open_with_the_key_that_was_asked_for_and_with_none_otherwise(place: Place) -> None:
    plain = place.back_up()
    assert (plain.manifest.secrets, plain.manifest.key_sha256) == (2, None)
    kept = "".join(path.read_text(errors="replace") for path in Path(place.dest).rglob("secret.key"))
    assert kept == ""
    place.back_up(keys=place.world.secrets)
    place.restore()
    secrets = Secrets(Settings(home=place.home))
    with Session(place.empty) as session:
        assert key_of(secrets, session.query(Endpoint).one()) == API_KEY
    assert (place.home / "secret.key").stat().st_mode & 0o077 == 0


def test_a_key_that_the_backup_has_lost_is_told_before_anything_is_written(place: Place) -> None:
    place.back_up(keys=place.world.secrets)
    (key,) = Path(place.dest).rglob("secret.key")
    key.unlink()
    with pytest.raises(BadBackup, match="key of the backup"):
        place.restore()
    assert not place.home.exists()


def test_no_file_of_a_backup_leaves_the_store_it_is_restored_into(place: Place, tmp_path: Path) -> None:
    """Someone who can write to the place of the backups should not write anywhere else by it."""
    made = place.back_up()
    blob = made.manifest.blobs[0]
    out = manifest.ImportFile(name="../../outside", sha256=blob.sha256, size=blob.size)
    changed = made.manifest.model_copy(update={"imports": [out]})
    (Path(place.dest) / "backups" / made.manifest.name / "manifest.json").write_bytes(manifest.dump(changed))
    with pytest.raises(CorruptArtifact, match="leaves its folder"):
        place.restore()
    assert not list(tmp_path.rglob("outside"))
    assert not (tmp_path / "other-artifacts").exists()


def test_another_key_of_the_home_is_not_overwritten(place: Place) -> None:
    place.back_up(keys=place.world.secrets)
    place.home.mkdir()
    (place.home / "secret.key").write_text("mine\n")
    with pytest.raises(NotEmpty):
        place.restore()
    assert (place.home / "secret.key").read_text() == "mine\n"
