"""A backup, restored into an empty place, is what was there at one moment."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from keeping_world import API_KEY, KeptWorld, rows_of, schema_of
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from s3_server import BUCKET, S3Server
from steerboard.datasets.imports_files import ImportFiles
from steerboard.keeping.backup import Backup, back_up, key_text
from steerboard.keeping.errors import BadBackup, NotEmpty
from steerboard.keeping.manifest import BackupManifest
from steerboard.keeping.restore import restore
from steerboard.platform import migrations
from steerboard.platform.artifacts import ArtifactStore
from steerboard.platform.database import new_id, transaction
from steerboard.platform.secrets import Secrets
from steerboard.platform.settings import Settings
from steerboard.platform.storage.protocol import open_storage
from steerboard.registry import service as registry
from steerboard.registry.endpoints import key_of
from steerboard.registry.tables import Endpoint, Model
from steerboard.runs.tables import Run


class Place:
    """Where backups go, and an empty home that one is restored into."""

    def __init__(self, engine: Engine, empty: Engine, world: KeptWorld, folder: Path) -> None:
        self.engine, self.empty, self.world = engine, empty, world
        self.dest = str(folder / "backups")
        self.home = folder / "other-home"
        self.store = ArtifactStore(f"file://{folder / 'other-artifacts'}")

    def back_up(self, *, key: str | None = None, verify: bool = False) -> Backup:
        return back_up(self.engine, self.world.store, open_storage(self.dest), key=key, verify=verify)

    def restore(self, name: str | None = None) -> BackupManifest:
        return restore(self.empty, self.store, open_storage(self.dest), home=self.home, name=name)


@pytest.fixture
def place(engine: Engine, empty: Engine, world: KeptWorld, tmp_path: Path) -> Place:
    return Place(engine, empty, world, tmp_path)


def test_every_row_the_schema_and_the_model_come_back(place: Place, tmp_path: Path) -> None:
    made = place.back_up()
    before = rows_of(place.engine)
    assert made.manifest.lost == []
    assert sum(map(len, before.values())) > 60
    place.restore()
    assert rows_of(place.empty) == before
    assert schema_of(place.empty) == schema_of(place.engine)
    with Session(place.empty) as session:
        model = session.query(Model).one()
        place.store.fetch(registry.manifest_of(session, model), tmp_path / "opened")
    assert b"weights of the base" in (tmp_path / "opened" / "model.safetensors").read_bytes()


def test_new_rows_go_on_counting_after_a_restore(place: Place) -> None:
    place.back_up()
    place.restore()
    with place.empty.begin() as connection:
        last = connection.execute(text("SELECT max(position) FROM runs")).scalar_one()
        values = connection.execute(text("SELECT last_value FROM pg_sequences WHERE sequencename LIKE 'runs_%'"))
        assert values.scalar_one() == last


def test_what_is_written_meanwhile_is_in_it_whole_or_not_at_all(place: Place) -> None:
    """A run is written with its transition, and models with their artifacts, over and over while backups are made."""
    stop = threading.Event()
    written: list[str] = []

    def write() -> None:
        while not stop.is_set():
            name = f"m-{len(written)}"
            place.world.model(name, os.urandom(50))
            written.append(name)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while len(written) < 3:
            time.sleep(0.01)
        place.back_up()
        seen = len(written)
        while len(written) < seen + 3:
            time.sleep(0.01)
    finally:
        stop.set()
        writer.join()
    place.restore()
    with Session(place.empty) as session:
        names = {model.name for model in session.query(Model)}
        for model in session.query(Model):
            for file in registry.manifest_of(session, model).files:
                assert b"".join(place.store.read(file["sha256"]))
    assert names == {"base", *written[: len(names) - 1]}
    assert 3 <= len(names) - 1 < len(written)


def test_a_blob_is_copied_once_for_all_backups(place: Place) -> None:
    first = place.back_up()
    assert first.copied > 0
    assert place.back_up().copied == 0
    place.world.model("second", b"others")
    third = place.back_up()
    assert 0 < third.copied < first.copied
    found = place.restore(first.manifest.name)
    assert found.name == first.manifest.name
    with Session(place.empty) as session:
        assert session.query(Model).count() == 1


@pytest.mark.long
def test_it_goes_to_s3_and_back(place: Place, s3: S3Server) -> None:
    place.dest = f"s3://{BUCKET}/backups-of-us"
    place.store = ArtifactStore(f"s3://{BUCKET}/restored")
    place.back_up()
    before = rows_of(place.engine)
    place.restore()
    assert rows_of(place.empty) == before


def test_a_file_that_waits_to_be_imported_comes_along(place: Place, settings: Settings) -> None:
    files, id_ = ImportFiles(settings.artifact_url), new_id()
    with (place.world.folder / "rows.jsonl").open("rb") as content:
        files.put(id_, "0", content)
    with place.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO imports (id, project_id, name, file_name, files, files_gone, size, format, state, columns,"
                " options, attempt, created_by) SELECT :id, id, 'n', 'f', '[]', false, 1, 'jsonl', 'ready', '[]', '{}',"
                " 0, 'me' FROM projects"
            ),
            {"id": id_},
        )
    place.back_up()
    place.restore()
    with ImportFiles(place.store.url).open(id_, "0") as back:
        assert back.read() == (place.world.folder / "rows.jsonl").read_bytes()


def test_the_artifact_store_itself_is_no_place_for_a_backup(place: Place) -> None:
    place.dest = f"{place.world.store.url}/"
    with pytest.raises(BadBackup, match="itself"):
        place.back_up()


def test_a_database_with_anything_in_it_is_refused(place: Place) -> None:
    place.back_up()
    migrations.migrate(place.empty)
    before = rows_of(place.empty)
    with pytest.raises(NotEmpty):
        place.restore()
    assert rows_of(place.empty) == before


@pytest.mark.parametrize("part", ["table", "blob", "manifest", "missing"])
def test_a_damaged_backup_is_refused_before_anything_is_written(place: Place, part: str) -> None:
    made = place.back_up()
    folder = Path(place.dest)
    path = {
        "table": folder / "backups" / made.manifest.name / "tables" / "runs.gz",
        "manifest": folder / "backups" / made.manifest.name / "manifest.json",
    }.get(part, next(path for path in (folder / "blobs").rglob("*") if path.is_file()))
    if part == "missing":
        path.unlink()
    else:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    with pytest.raises(BadBackup):
        place.restore()
    with place.empty.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")).scalar_one() == 0
    assert not list(place.world.folder.joinpath("other-artifacts").rglob("*"))


@pytest.mark.long
def test_verify_mends_what_was_damaged_at_the_destination(place: Place) -> None:
    place.back_up()
    path = next(path for path in (Path(place.dest) / "blobs").rglob("*") if path.is_file())
    content = path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    place.back_up(verify=True)
    assert path.read_bytes() == content
    place.restore()


def test_a_blob_that_the_store_has_lost_is_named_and_the_rest_is_kept(place: Place) -> None:
    place.world.model("hurt", b"to be lost")
    (path,) = [
        path
        for path in Path(place.world.store.url.removeprefix("file://")).rglob("*")
        if path.is_file() and b"to be lost" in path.read_bytes()
    ]
    path.write_bytes(b"damaged")
    made = place.back_up()
    assert made.manifest.lost == [path.name]
    before = rows_of(place.engine)
    place.restore()
    assert rows_of(place.empty) == before


@pytest.mark.long
def test_a_backup_that_was_killed_is_none_and_the_next_one_is_whole(place: Place) -> None:
    code = (
        "import os, sys; from sqlalchemy import create_engine\n"
        "from steerboard.keeping import backup; from steerboard.platform.artifacts import ArtifactStore\n"
        "from steerboard.platform.storage.protocol import open_storage\n"
        "backup._Copier.copy = lambda *_: os.kill(os.getpid(), 9)\n"
        "url, artifacts, dest = sys.argv[1:]\n"
        "backup.back_up(create_engine(url), ArtifactStore(artifacts), open_storage(dest), key=None, verify=False)"
    )
    url = place.engine.url.render_as_string(hide_password=False)
    command = [sys.executable, "-c", code, url, place.world.store.url, place.dest]
    assert subprocess.run(command).returncode == -9
    assert (Path(place.dest) / "backups").is_dir()
    with pytest.raises(BadBackup, match="no complete backup"):
        place.restore()
    place.back_up()
    place.restore()


def test_a_restore_that_fails_in_the_middle_leaves_an_empty_database(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.back_up()
    with monkeypatch.context() as patch:
        # The last step of all: the database goes away.
        upgrade = migrations.upgrade

        def break_off(connection: object, revision: str) -> None:
            if revision == "head":
                raise KeyboardInterrupt
            upgrade(connection, revision)  # type: ignore[arg-type]

        patch.setattr(migrations, "upgrade", break_off)
        with pytest.raises(KeyboardInterrupt):
            place.restore()
    place.restore()
    assert rows_of(place.empty) == rows_of(place.engine)


def test_a_backup_of_an_older_schema_is_brought_to_this_one(place: Place, empty: Engine, tmp_path: Path) -> None:
    with place.engine.begin() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
        migrations.upgrade(connection, "0001")
    assert place.back_up().manifest.revision == "0001"
    place.restore()
    with place.empty.connect() as connection:
        assert migrations.current_revision(connection) == migrations.newest_revision()


def test_secrets_open_with_the_key_that_was_asked_for_and_with_none_otherwise(place: Place) -> None:
    plain = place.back_up()
    assert (plain.manifest.secrets, plain.manifest.key_sha256) == (2, None)
    kept = "".join(path.read_text(errors="replace") for path in Path(place.dest).rglob("secret.key"))
    assert kept == ""
    place.back_up(key=key_text(place.world.secrets))
    place.restore()
    secrets = Secrets(Settings(home=place.home))
    with Session(place.empty) as session:
        assert key_of(secrets, session.query(Endpoint).one()) == API_KEY
    assert (place.home / "secret.key").stat().st_mode & 0o077 == 0


def test_another_key_of_the_home_is_not_overwritten(place: Place) -> None:
    place.back_up(key=key_text(place.world.secrets))
    place.home.mkdir()
    (place.home / "secret.key").write_text("mine\n")
    with pytest.raises(NotEmpty):
        place.restore()
    assert (place.home / "secret.key").read_text() == "mine\n"


@pytest.mark.long
def test_a_hundred_thousand_rows_need_little_memory(place: Place) -> None:
    with transaction(place.world.sessions) as session:
        run_id = session.query(Run).first().id  # type: ignore[union-attr]
        session.execute(
            text(
                "INSERT INTO run_logs (run_id, attempt, level, message)"
                " SELECT :run, 1, 'info', repeat(md5(n::text), 60) FROM generate_series(1, 100000) n"
            ),
            {"run": run_id},
        )
    code = (
        "import resource, sys; from sqlalchemy import create_engine; from pathlib import Path\n"
        "from steerboard.keeping import backup, restore; from steerboard.platform.artifacts import ArtifactStore\n"
        "from steerboard.platform.storage.protocol import open_storage\n"
        "url, other, artifacts, dest, home = sys.argv[1:]; store = ArtifactStore(artifacts)\n"
        "used = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024\n"
        "import steerboard.platform.tables; before = used()\n"
        "backup.back_up(create_engine(url), store, open_storage(dest), key=None, verify=False)\n"
        "restore.restore(create_engine(other), store, open_storage(dest), home=Path(home))\n"
        "print(used() - before)"
    )
    urls = [engine.url.render_as_string(hide_password=False) for engine in (place.engine, place.empty)]
    command = [sys.executable, "-c", code, *urls, place.world.store.url, place.dest, str(place.home)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 60
    with place.empty.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM run_logs")).scalar_one() == 100_001
