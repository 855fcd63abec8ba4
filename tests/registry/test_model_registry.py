"""Models enter whole and safe, reach local disks verified, and know where they came from."""

from __future__ import annotations

import os
import pickle
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.errors import InUse, NameTaken
from steerboard.platform.database import transaction
from steerboard.platform.http.errors import NotFound
from steerboard.platform.storage.artifacts import ArtifactStore, CorruptArtifact
from steerboard.platform.storage.local_cache import LocalCache
from steerboard.registry import service
from steerboard.registry.local_copies import materialise
from steerboard.registry.tables import Artifact, Model
from steerboard_contracts.errors import BadInput, UnsafeModelFile
from support.models.model_folders import safetensors, write_model

Register = Callable[..., Model]


@pytest.fixture
def register(sessions: sessionmaker[Session], project: Project, store: ArtifactStore) -> Register:
    def run(
        folder: Path, name: str = "m", role: str = "sft", method: str = "sft", parent: Model | None = None
    ) -> Model:
        with transaction(sessions) as session:
            return service.register_model(
                session,
                store,
                project,
                name=name,
                folder=folder,
                role=role,
                method=method,  # type: ignore[arg-type]
                parent_id=parent.id if parent else None,
                run_id=None,
            )

    return run


def test_a_model_is_stored_once_and_found_by_name_and_id(
    sessions: sessionmaker[Session], project: Project, tmp_path: Path, register: Register
) -> None:
    first = register(write_model(tmp_path / "a"), "first")
    second = register(write_model(tmp_path / "b"), "second")
    assert first.artifact_hash == second.artifact_hash
    assert first.info["architecture"] == "LlamaForCausalLM"
    with sessions() as session:
        assert session.scalar(select(func.count()).select_from(Artifact)) == 1
        assert service.get_model(session, project, "second").id == second.id
        assert service.get_model(session, project, str(first.id)).name == "first"
        with pytest.raises(NotFound) as unknown:
            service.get_model(session, project, "third")
        assert unknown.value.code == "unknown_model"
    with pytest.raises(NameTaken):
        register(tmp_path / "a", "first")


def test_another_projects_model_is_not_found(
    sessions: sessionmaker[Session], tmp_path: Path, register: Register
) -> None:
    model = register(write_model(tmp_path / "a"))
    with transaction(sessions) as session:
        other = Project(name="other", split_salt="x", held_out_fraction=0.1)
        session.add(other)
        session.flush()
        for ref in ("m", str(model.id)):
            with pytest.raises(NotFound):
                service.get_model(session, other, ref)


@pytest.mark.parametrize(
    "name", ["pytorch_model.bin", "weights.pt", "model.pkl", "last.ckpt", "modeling.py", "sub/run.sh", "x.PTH", "a.h5"]
)
def test_pickles_and_code_are_refused_by_name(
    sessions: sessionmaker[Session], tmp_path: Path, register: Register, name: str
) -> None:
    folder = write_model(tmp_path / "a")
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_bytes(b"anything")
    with pytest.raises(UnsafeModelFile, match="not allowed") as refused:
        register(folder)
    assert refused.value.code == "unsafe_model_file"
    assert [place.location for place in refused.value.errors] == [name]
    with sessions() as session:
        assert session.scalar(select(func.count()).select_from(Artifact)) == 0


@pytest.mark.parametrize("name", ["model-2.safetensors", "vocab.json", "spiece.model"])
def test_a_pickle_under_a_safe_name_is_refused(tmp_path: Path, register: Register, name: str) -> None:
    folder = write_model(tmp_path / "a")
    (folder / name).write_bytes(pickle.dumps({"w": 1}, protocol=4))
    with pytest.raises(UnsafeModelFile, match=name):
        register(folder)


@pytest.mark.parametrize("content", [b"", b"\x05", safetensors(b"12")[:12], b"\xff" * 8 + b"{}"])
def test_what_only_claims_to_be_safetensors_is_refused(tmp_path: Path, register: Register, content: bytes) -> None:
    folder = write_model(tmp_path / "a")
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(UnsafeModelFile, match="not a safetensors file"):
        register(folder)


def test_links_are_refused_wherever_they_lead(tmp_path: Path, register: Register) -> None:
    folder = write_model(tmp_path / "a")
    (tmp_path / "secret.json").write_text("{}")
    (folder / "notes.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(UnsafeModelFile, match="symbolic link"):
        register(folder)
    (tmp_path / "link").symlink_to(write_model(tmp_path / "b"))
    with pytest.raises(BadInput):
        register(tmp_path / "link")


def test_a_folder_that_is_no_model_says_what_is_missing(tmp_path: Path, register: Register) -> None:
    for missing, code in (
        ("model.safetensors", "not_a_model"),
        ("config.json", "not_a_model"),
        ("steerboard.json", "bad_model_info"),
    ):
        folder = write_model(tmp_path / missing)
        (folder / missing).unlink()
        with pytest.raises(BadInput, match=missing.removeprefix("model.")) as refused:
            register(folder)
        assert refused.value.code == code


def test_the_folders_own_word_on_role_and_method_counts(tmp_path: Path, register: Register) -> None:
    with pytest.raises(BadInput) as refused:
        register(write_model(tmp_path / "a"), role="reward", method="reward_model")
    assert refused.value.code == "role_mismatch"


def test_a_local_copy_is_complete_verified_and_mended(
    sessions: sessionmaker[Session], store: ArtifactStore, tmp_path: Path, register: Register
) -> None:
    source = write_model(tmp_path / "a")
    model = register(source)
    cache = LocalCache(tmp_path / "cache")

    def fetch() -> Path:
        with sessions() as session, ExitStack() as holds:
            return materialise(store, service.manifest_of(session, model), cache, holds)

    folder = fetch()
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == {p.name: p.read_bytes() for p in source.iterdir()}
    before = (folder / "model.safetensors").stat().st_mtime_ns
    assert fetch() == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == before
    for damage in ("change", "remove", "add"):
        path = folder / "model.safetensors"
        path.chmod(0o644)
        if damage == "change":
            path.write_bytes(path.read_bytes()[:-1] + b"?")
        elif damage == "remove":
            path.unlink()
        else:
            (folder / "evil.py").write_text("x")
        assert fetch() == folder
        assert {p.name: p.read_bytes() for p in folder.iterdir()} == {p.name: p.read_bytes() for p in source.iterdir()}


def test_a_damaged_store_never_reaches_the_cache(
    sessions: sessionmaker[Session],
    store: ArtifactStore,
    settings: object,
    home: Path,
    tmp_path: Path,
    register: Register,
) -> None:
    model = register(write_model(tmp_path / "a", weights=b"unique weights"))
    damaged = [
        blob
        for blob in (home / "artifacts" / "blobs").rglob("*")
        if blob.is_file() and b"unique weights" in blob.read_bytes()
    ]
    assert len(damaged) == 1
    damaged[0].chmod(0o644)
    damaged[0].write_bytes(damaged[0].read_bytes().replace(b"unique", b"UNIQUE"))
    with sessions() as session, ExitStack() as holds, pytest.raises(CorruptArtifact):
        materialise(store, service.manifest_of(session, model), LocalCache(tmp_path / "cache"), holds)
    assert [path for path in (tmp_path / "cache" / "models").iterdir() if path.is_dir()] == []


def test_workers_that_ask_at_once_share_one_copy(
    sessions: sessionmaker[Session], store: ArtifactStore, tmp_path: Path, register: Register
) -> None:
    model = register(write_model(tmp_path / "a", weights=os.urandom(2**20)))
    paths: list[Path] = []
    barrier = threading.Barrier(4)

    def work() -> None:
        barrier.wait()
        with sessions() as session, ExitStack() as holds:
            manifest = service.manifest_of(session, model)
            paths.append(materialise(store, manifest, LocalCache(tmp_path / "cache"), holds))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(paths) == 4
    assert len(set(paths)) == 1
    folders = [path.name for path in (tmp_path / "cache" / "models").iterdir() if path.is_dir()]
    assert folders == [model.artifact_hash]


def test_a_model_with_children_is_not_deleted(
    sessions: sessionmaker[Session], project: Project, tmp_path: Path, register: Register
) -> None:
    parent = register(write_model(tmp_path / "a"), "parent")
    child = register(write_model(tmp_path / "b", weights=b"456"), "child", parent=parent)
    with transaction(sessions) as session:
        with pytest.raises(InUse):
            service.delete_model(session, service.get_model(session, project, "parent"))
        service.delete_model(session, session.get_one(Model, child.id))
        service.delete_model(session, session.get_one(Model, parent.id))
