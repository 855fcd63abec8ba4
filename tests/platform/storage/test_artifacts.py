from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import pytest

from steerboard.platform.storage.artifacts import ArtifactStore, CorruptArtifact, Manifest
from steerboard_contracts.errors import NoSpaceLeft, SteerboardError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "model"
    (made / "sub").mkdir(parents=True)
    (made / "weights.bin").write_bytes(os.urandom(3_000_000))
    (made / "sub" / "config.json").write_text("{}")
    return made


@pytest.fixture
def local_store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(f"file://{tmp_path / 'store'}")


def blob_of(store: ArtifactStore, sha256: str) -> Path:
    return Path(store.url.removeprefix("file://")) / "blobs" / sha256[:2] / sha256


def test_a_folder_comes_back_as_it_went_in(local_store: ArtifactStore, folder: Path, tmp_path: Path) -> None:
    manifest = local_store.put_folder(folder)
    local_store.fetch(manifest, tmp_path / "back")
    for path in ("weights.bin", "sub/config.json"):
        assert (tmp_path / "back" / path).read_bytes() == (folder / path).read_bytes()
    assert manifest.size == 3_000_002
    assert manifest.hash == local_store.put_folder(folder).hash == local_store.put_folder(tmp_path / "back").hash


def test_a_damaged_blob_is_refused_and_nothing_is_left_behind(
    local_store: ArtifactStore, folder: Path, tmp_path: Path
) -> None:
    manifest = local_store.put_folder(folder)
    damaged = blob_of(local_store, hashlib.sha256((folder / "weights.bin").read_bytes()).hexdigest())
    content = bytearray(damaged.read_bytes())
    content[1000] ^= 1
    damaged.write_bytes(content)
    with pytest.raises(CorruptArtifact, match="damaged"):
        local_store.fetch(manifest, tmp_path / "back")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "store"]
    local_store.put_folder(folder)
    local_store.fetch(manifest, tmp_path / "mended")
    assert (tmp_path / "mended" / "weights.bin").read_bytes() == (folder / "weights.bin").read_bytes()


def test_a_missing_blob_is_refused(local_store: ArtifactStore, folder: Path, tmp_path: Path) -> None:
    manifest = local_store.put_folder(folder)
    blob_of(local_store, manifest.files[0]["sha256"]).unlink()
    with pytest.raises(CorruptArtifact, match="missing"):
        local_store.fetch(manifest, tmp_path / "back")


@pytest.mark.parametrize("name", ["../outside", "/etc/outside", "a/../../outside", ""])
def test_a_manifest_cannot_leave_its_folder(local_store: ArtifactStore, tmp_path: Path, name: str) -> None:
    manifest = Manifest.of([{"path": name, "sha256": "0" * 64, "size": 0}])
    with pytest.raises(CorruptArtifact, match="leaves its folder"):
        local_store.fetch(manifest, tmp_path / "back")


@pytest.mark.parametrize(
    "sha256",
    ["", "ab", "../../outside", "A" * 64, "0" * 63 + "\u0663", "0" * 64 + "\n", "0" * 65, "0" * 64 + "/../../outside"],
)
def test_nothing_is_opened_by_what_is_no_hash(local_store: ArtifactStore, tmp_path: Path, sha256: str) -> None:
    (tmp_path / "store" / "blobs" / sha256[:2] / ("0" * 64)).mkdir(parents=True)
    (tmp_path / "store" / "blobs" / "outside").write_text("secret")
    manifest = Manifest.of([{"path": "file", "sha256": sha256, "size": 6}])
    for opened in (
        lambda: local_store.open(sha256),
        lambda: local_store.fetch(manifest, tmp_path / "back"),
        lambda: local_store.has_size(sha256, 6),
    ):
        with pytest.raises(CorruptArtifact, match=r"is not the SHA-256"):
            opened()


def test_what_lies_among_the_blobs_and_is_none_is_not_listed(local_store: ArtifactStore, folder: Path) -> None:
    stored = {file["sha256"] for file in local_store.put_folder(folder).files}
    blob = blob_of(local_store, min(stored))
    for name in (f"{blob.name}.bak", f"{blob.name}0", f"{blob.name}\n", f"a{blob.name}", blob.name.upper(), "README"):
        blob.with_name(name).write_bytes(blob.read_bytes())
    assert {sha256 for sha256, _ in local_store.blobs()} == stored


def test_links_are_not_stored(local_store: ArtifactStore, folder: Path) -> None:
    (folder / "link").symlink_to("/etc/passwd")
    with pytest.raises(SteerboardError, match="not a plain file"):
        local_store.put_folder(folder)


def test_a_full_disk_leaves_no_blob(local_store: ArtifactStore, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(NoSpaceLeft):
            local_store.put_folder(folder)
    root = Path(local_store.url.removeprefix("file://"))
    assert [path for path in root.rglob("*") if path.is_file()] == []
    local_store.put_folder(folder)


def test_who_comes_second_takes_what_the_first_fetched(
    local_store: ArtifactStore, folder: Path, tmp_path: Path
) -> None:
    manifest = local_store.put_folder(folder)
    local_store.fetch(manifest, tmp_path / "back")
    local_store.fetch(manifest, tmp_path / "back")
    assert (tmp_path / "back" / "sub" / "config.json").read_text() == "{}"
