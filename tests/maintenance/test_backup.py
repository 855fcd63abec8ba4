"""A backup, restored into an empty place, is what was there at one moment."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from maintenance_world import API_KEY, Place, rows_of, schema_of, somebody_waits
from sqlalchemy import text
from sqlalchemy.orm import Session

from steerboard.datasets.imports.files import ImportFiles
from steerboard.maintenance import backup, key_rotation, manifest
from steerboard.maintenance.backup import Backup
from steerboard.maintenance.errors import BadBackup
from steerboard.platform import migrations
from steerboard.platform.database import new_id, transaction
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import Settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.platform.storage.from_url import open_storage
from steerboard.registry import service as registry
from steerboard.registry.endpoints.service import key_of
from steerboard.registry.tables import Endpoint, Model
from steerboard.runs.tables import Run
from support.patience import wait_until
from support.servers.s3_server import BUCKET, S3Server


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
    with place.empty.begin() as connection:
        last = connection.execute(text("SELECT max(position) FROM runs")).scalar_one()
        values = connection.execute(text("SELECT last_value FROM pg_sequences WHERE sequencename LIKE 'runs_%'"))
        assert values.scalar_one() == last  # new rows continue the count


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
        wait_until(lambda: len(written) >= 3, pause=0.01)
        place.back_up()
        seen = len(written)
        wait_until(lambda: len(written) >= seen + 3, pause=0.01)
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


def test_a_migration_under_way_is_waited_for_and_a_key_that_is_changed_meanwhile_comes_along(
    place: Place, home: Path
) -> None:
    """A rewritten table is empty for every snapshot from before, and resealed secrets open with the
    new key alone."""
    made: list[Backup] = []
    run_logs = len(rows_of(place.engine)["run_logs"])
    with place.engine.connect() as migration:
        migrations.lock(migration)
        migration.execute(text("ALTER TABLE run_logs ALTER COLUMN attempt TYPE bigint"))
        thread = threading.Thread(target=lambda: made.append(place.back_up(keys=place.world.secrets)))
        thread.start()
        wait_until(lambda: not thread.is_alive() or somebody_waits(place.engine), pause=0.01)
        key_rotation.rotate(place.engine, place.world.secrets, home)
        migration.commit()
    thread.join()
    assert [table.rows for table in made[0].manifest.tables if table.name == "run_logs"] == [run_logs]
    (key,) = Path(place.dest).rglob("secret.key")
    place.home.mkdir()
    (place.home / "secret.key").write_text(key.read_text().splitlines()[0])
    with Session(place.engine) as session:
        assert key_of(Secrets(Settings(home=place.home)), session.query(Endpoint).one()) == API_KEY


def test_a_blob_is_copied_once_for_all_backups(place: Place) -> None:
    first = place.back_up()
    assert first.copied > 0
    assert place.back_up().copied == 0
    place.world.model("second", b"others")
    third = place.back_up()
    assert 0 < third.copied < first.copied
    restored = place.restore(first.manifest.name)
    assert restored.name == first.manifest.name
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


def test_a_backup_that_another_one_took_for_dead_does_not_call_itself_complete(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It copied for longer than a day, in which its tables were cleared away."""
    copy = backup._Copier.copy

    def slowly(copier: backup._Copier, blob: manifest.Blob) -> None:
        copy(copier, blob)
        backup._forget_unfinished(open_storage(place.dest))

    with monkeypatch.context() as patch:
        patch.setattr(backup, "_STALE", dt.timedelta(0))
        patch.setattr(backup._Copier, "copy", slowly)
        with pytest.raises(BadBackup, match="longer than a day"):
            place.back_up()
    with pytest.raises(BadBackup, match="no complete backup"):
        place.restore()
    place.back_up()
    place.restore()


@pytest.mark.long
def test_a_backup_that_was_killed_is_none_and_the_next_one_is_whole(place: Place) -> None:
    code = (
        "import os, sys; from sqlalchemy import create_engine\n"
        "from steerboard.maintenance import backup; from steerboard.platform.storage.artifacts import ArtifactStore\n"
        "from steerboard.platform.storage.from_url import open_storage\n"
        "backup._Copier.copy = lambda *_: os.kill(os.getpid(), 9)\n"
        "url, artifacts, dest = sys.argv[1:]\n"
        "backup.back_up(create_engine(url), ArtifactStore(artifacts), open_storage(dest), keys=None, verify=False)"
    )
    url = place.engine.url.render_as_string(hide_password=False)
    command = [sys.executable, "-c", code, url, place.world.store.url, place.dest]
    assert subprocess.run(command).returncode == -9
    assert (Path(place.dest) / "backups").is_dir()
    with pytest.raises(BadBackup, match="no complete backup"):
        place.restore()
    place.back_up()
    place.restore()


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
        "from steerboard.maintenance import backup, restore\n"
        "from steerboard.platform.storage.artifacts import ArtifactStore\n"
        "from steerboard.platform.storage.from_url import open_storage\n"
        "url, other, artifacts, dest, home = sys.argv[1:]; store = ArtifactStore(artifacts)\n"
        "used = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024\n"
        "import steerboard.app.tables; before = used()\n"
        "backup.back_up(create_engine(url), store, open_storage(dest), keys=None, verify=False)\n"
        "restore.restore(create_engine(other), store, open_storage(dest), home=Path(home))\n"
        "print(used() - before)"
    )
    urls = [engine.url.render_as_string(hide_password=False) for engine in (place.engine, place.empty)]
    command = [sys.executable, "-c", code, *urls, place.world.store.url, place.dest, str(place.home)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 60
    with place.empty.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM run_logs")).scalar_one() == 100_001
