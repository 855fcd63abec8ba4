"""Collecting frees what nothing refers to, and nothing else, whatever happens meanwhile."""

from __future__ import annotations

import datetime as dt
import io
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from maintenance_world import KeptWorld, somebody_waits
from sqlalchemy import Engine, text

from steerboard.maintenance import backup, manifest
from steerboard.maintenance.errors import StoreBusy
from steerboard.maintenance.garbage_collection import Collected, collect
from steerboard.platform.database import new_id, transaction
from steerboard.platform.storage.artifacts import ArtifactStore, Manifest
from steerboard.platform.storage.from_url import open_storage
from steerboard.platform.storage.protocol import Stored
from steerboard.registry import service as registry
from steerboard.registry.tables import Artifact, Model
from support.models.model_folders import write_model
from support.patience import wait_until
from support.servers.s3_server import BUCKET, S3Server

NOW = dt.timedelta(0)
OLD = dt.timedelta(days=30)


def hashes(store: ArtifactStore) -> set[str]:
    return {sha256 for sha256, _ in store.blobs()}


def grow_old(engine: Engine, store: ArtifactStore, *but: str) -> None:
    """All artifacts and blobs, except for some blobs, are older than any age that is asked for."""
    with engine.begin() as connection:
        connection.execute(text("UPDATE artifacts SET created_at = now() - interval '60 days'"))
    root, then = Path(store.url.removeprefix("file://")), time.time() - 60 * 86400
    for path in root.rglob("*"):
        if path.is_file() and path.name not in but:
            os.utime(path, (then, then))


class Shelf:
    """Artifacts of tiny files, each used by a model, by a run's output, by both or by nothing; and stray blobs."""

    def __init__(self, world: KeptWorld) -> None:
        self.world = world
        self.files: dict[int, str] = {}

    def clear(self) -> None:
        with transaction(self.world.sessions) as session:
            session.execute(text("DELETE FROM run_outputs"))
            session.execute(text("DELETE FROM models"))
            session.execute(text("DELETE FROM artifacts"))
        self.world.store.remove(list(hashes(self.world.store)))

    def blob(self, number: int) -> str:
        path = self.world.folder / f"file-{number}"
        path.mkdir(exist_ok=True)
        (path / "file").write_bytes(f"content {number}".encode())
        return str(self.world.store.put_folder(path).files[0]["sha256"])

    def artifact(self, numbers: frozenset[int]) -> Manifest:
        files = [{"path": f"f{n}", "sha256": self.blob(n), "size": 9} for n in sorted(numbers)]
        manifest = Manifest.of(files)
        with transaction(self.world.sessions) as session:
            if session.get(Artifact, manifest.hash) is None:
                session.add(Artifact(hash=manifest.hash, size=manifest.size, manifest={"files": manifest.files}))
        return manifest

    def use(self, manifest: Manifest, by: str) -> None:
        if by in ("model", "both"):
            with transaction(self.world.sessions) as session:
                session.add(
                    Model(
                        project_id=self.world.project_id,
                        name=new_id().hex,
                        role="sft",
                        artifact_hash=manifest.hash,
                        info={},
                    )
                )
        if by in ("output", "both"):
            self.world.output(new_id().hex, manifest.hash)


@examples(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    artifacts=st.lists(
        st.tuples(
            st.frozensets(st.integers(0, 12), min_size=1, max_size=4), st.sampled_from(["model", "output", "both", ""])
        ),
        max_size=6,
    ),
    strays=st.sets(st.integers(0, 20), max_size=6),
    young=st.sets(st.integers(0, 20), max_size=3),
)
def test_all_that_is_old_and_unused_goes_and_nothing_that_is_used(
    world: KeptWorld,
    engine: Engine,
    artifacts: list[tuple[frozenset[int], str]],
    strays: set[int],
    young: set[int],
) -> None:
    shelf = Shelf(world)
    shelf.clear()
    used: set[str] = set()
    rows: set[str] = set()
    for numbers, by in artifacts:
        manifest = shelf.artifact(numbers)
        shelf.use(manifest, by)
        if by:
            used |= {file["sha256"] for file in manifest.files}
            rows.add(manifest.hash)
    fresh = {shelf.blob(number) for number in young}
    everything = {shelf.blob(number) for number in strays} | hashes(world.store)
    grow_old(engine, world.store, *fresh)
    tried = collect(engine, world.store, age=OLD, dry_run=True)
    assert hashes(world.store) == everything
    done = collect(engine, world.store, age=OLD)
    assert hashes(world.store) == used | fresh
    assert done == tried
    assert done.blobs == len(everything) - len(used | fresh)
    with engine.connect() as connection:
        assert set(connection.execute(text("SELECT hash FROM artifacts")).scalars()) == rows


def test_what_was_looked_at_stays_until_the_reference_to_it_is_there(world: KeptWorld, engine: Engine) -> None:
    world.model("gone", b"of both")
    world.drop_model("gone")
    with transaction(world.sessions) as session:
        manifest = registry.store_folder(session, world.store, world.folder / "model-gone")
        with pytest.raises(StoreBusy):
            collect(engine, world.store, age=NOW, patience_seconds=0.2)
        session.add(Model(project_id=world.project_id, name="late", role="sft", artifact_hash=manifest.hash, info={}))
    assert hashes_of_models(world) == hashes(world.store)


def test_what_was_referred_to_since_the_references_were_asked_stays(
    world: KeptWorld, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.store.put_folder(write_model(world.folder / "orphan", weights=b"of the late one"))
    before = list(world.store.blobs())

    def blobs() -> Iterator[tuple[str, Stored]]:
        world.model("late", b"of the late one")
        yield from before

    monkeypatch.setattr(world.store, "blobs", blobs)
    collect(engine, world.store, age=NOW)
    assert {sha256 for sha256, _ in before} <= hashes_of_models(world)


def test_who_stores_what_is_just_being_removed_stores_it_again(
    world: KeptWorld, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.store.put_folder(write_model(world.folder / "orphan", weights=b"of both"))
    writer = threading.Thread(target=world.model, args=("late", b"of both"))
    remove = world.store.remove

    def remove_slowly(batch: list[str]) -> None:
        writer.start()
        wait_until(lambda: not writer.is_alive() or somebody_waits(engine), pause=0.01)
        remove(batch)

    monkeypatch.setattr(world.store, "remove", remove_slowly)
    assert collect(engine, world.store, age=NOW).blobs > 0
    writer.join()
    assert hashes_of_models(world) == hashes(world.store)


def hashes_of_models(world: KeptWorld) -> set[str]:
    """All blobs that models need, each of which is there and whole."""
    with transaction(world.sessions) as session:
        files = [file for model in session.query(Model) for file in registry.manifest_of(session, model).files]
        assert {"base", "late"} == {model.name for model in session.query(Model)}
    for file in files:
        assert sum(map(len, world.store.read(file["sha256"]))) == file["size"]
    return {file["sha256"] for file in files}


@pytest.mark.long
def test_what_is_stored_while_collecting_stays_whole(world: KeptWorld, engine: Engine) -> None:
    """Models of one content come and go, so that its blobs are orphans at one moment and needed at the next."""
    stop = threading.Event()
    trouble: list[BaseException] = []

    def come_and_go(number: int) -> None:
        try:
            while not stop.is_set():
                name = f"m-{number}-{new_id().hex}"
                id_ = world.model(name, b"of all of them")
                with transaction(world.sessions) as session:
                    for file in registry.manifest_of(session, session.get_one(Model, id_)).files:
                        for _ in world.store.read(file["sha256"]):
                            pass
                world.drop_model(name)
        except BaseException as error:
            trouble.append(error)

    threads = [threading.Thread(target=come_and_go, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    collected = 0
    end = time.monotonic() + 6
    while (time.monotonic() < end or collected <= 3) and not trouble:
        collected += collect(engine, world.store, age=NOW).blobs
    stop.set()
    for thread in threads:
        thread.join()
    assert trouble == []
    assert collected > 3
    collect(engine, world.store, age=NOW)
    with transaction(world.sessions) as session:
        kept = {file["sha256"] for row in session.query(Artifact) for file in row.manifest["files"]}
        assert session.query(Model).count() == 1
    assert hashes(world.store) == kept


def test_it_gives_up_while_a_backup_copies(
    world: KeptWorld, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the backup's snapshot refers to may be an orphan by now."""
    copy, refused = backup._Copier.copy, []

    def copy_later(copier: backup._Copier, blob: manifest.Blob) -> None:
        if not refused:
            world.drop_model("base")
            with pytest.raises(StoreBusy) as caught:
                collect(engine, world.store, age=NOW, patience_seconds=0.2)
            refused.append(caught.value.code)
        copy(copier, blob)

    monkeypatch.setattr(backup._Copier, "copy", copy_later)
    made = backup.back_up(engine, world.store, open_storage(str(tmp_path / "backups")), keys=None, verify=False)
    assert refused == ["store_busy"]
    assert made.manifest.lost == []
    assert collect(engine, world.store, age=NOW).blobs == len(made.manifest.blobs)


def test_an_artifact_that_nothing_refers_to_yet_stays_until_it_is_old(world: KeptWorld, engine: Engine) -> None:
    """A worker of a version without the lock may be about to refer to it."""
    world.model("young", b"old weights, stored again")
    world.drop_model("young")
    before = hashes(world.store)
    grow_old(engine, world.store)
    with engine.begin() as connection:
        connection.execute(text("UPDATE artifacts SET created_at = now()"))
    assert collect(engine, world.store, age=OLD) == Collected()
    assert hashes(world.store) == before


def test_stale_uploads_go_and_young_ones_stay(world: KeptWorld, engine: Engine, s3: S3Server) -> None:
    store = ArtifactStore(f"s3://{BUCKET}/p")
    store.storage._calls("create_multipart_upload", Key="p/blobs/ab/abc")  # type: ignore[attr-defined]
    century = dt.timedelta(days=36_500)  # this server dates every upload to 2010
    assert collect(engine, store, age=NOW, upload_age=century).uploads == 0
    assert collect(engine, store, age=NOW, dry_run=True).uploads == s3.unfinished() == 1
    assert collect(engine, store, age=NOW).uploads == 1
    assert s3.unfinished() == 0
    store.put(store_hash := "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881", io.BytesIO(b"x"))
    assert collect(engine, store, age=OLD).blobs == 0
    assert collect(engine, store, age=NOW).blobs == 1
    assert not store.has_size(store_hash, 1)


def test_a_cut_off_upload_into_a_folder_is_stale_too(world: KeptWorld, engine: Engine) -> None:
    folder = Path(world.store.url.removeprefix("file://")) / "blobs" / "ab"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".abc.1.partial").write_bytes(b"half")
    assert collect(engine, world.store, age=NOW).uploads == 0
    grow_old(engine, world.store)
    assert collect(engine, world.store, age=OLD).uploads == 1
    assert not (folder / ".abc.1.partial").exists()
