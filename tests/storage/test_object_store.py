"""The artifact store on S3: whole or not at all, in bounded memory, through the failures that S3 has."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from steerboard.platform.storage.artifacts import ArtifactStore, CorruptArtifact
from steerboard.platform.storage.backends import objects
from steerboard.platform.storage.backends.objects import PART_BYTES
from steerboard.platform.storage.errors import BadStoreUrl, NoSuchBucket, StoreRefused, StoreUnavailable
from steerboard.platform.storage.from_url import open_storage
from support.servers.s3_server import BUCKET, DENIED, INTERNAL, NO_SUCH_UPLOAD, Fault, S3Server

_SMALLEST_PART = 5 << 20  # that S3 takes
LARGE = _SMALLEST_PART * 2 + 12_345


@pytest.fixture
def store(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> ArtifactStore:
    monkeypatch.setattr(objects, "PART_BYTES", _SMALLEST_PART)
    return ArtifactStore(f"s3://{BUCKET}/some/prefix")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "model"
    (made / "sub").mkdir(parents=True)
    (made / "weights.bin").write_bytes(os.urandom(LARGE))
    (made / "sub" / "config.json").write_text("{}")
    return made


def key_of(sha256: str) -> str:
    return f"some/prefix/blobs/{sha256[:2]}/{sha256}"


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_folder_comes_back_and_is_sent_once(s3: S3Server, store: ArtifactStore, folder: Path, tmp_path: Path) -> None:
    manifest = store.put_folder(folder)
    assert set(s3.objects()) == {key_of(file["sha256"]) for file in manifest.files}
    store.fetch(manifest, tmp_path / "back")
    for path in ("weights.bin", "sub/config.json"):
        assert (tmp_path / "back" / path).read_bytes() == (folder / path).read_bytes()
    assert s3.unchecked == 0
    s3.requests.clear()
    assert store.put_folder(folder) == manifest
    assert {method for method, _ in s3.requests} == {"HEAD"}
    assert s3.unfinished() == 0


@pytest.mark.parametrize(
    "fault",
    [
        Fault("PUT", 2, query="partNumber=2"),
        Fault("PUT", 2, status="500 Internal Server Error", body=INTERNAL),
        Fault("PUT", 2, query="partNumber=1", reset=True),
        Fault("GET", 2, reset=True),
        Fault("GET", 2),
        Fault("GET", 1, cut=True),
    ],
    ids=["slow-down", "internal-error", "reset", "reset-while-read", "slow-while-read", "cut-while-read"],
)
def test_what_passes_is_tried_again(
    s3: S3Server, store: ArtifactStore, folder: Path, tmp_path: Path, fault: Fault
) -> None:
    s3.faults.append(fault)
    store.fetch(store.put_folder(folder), tmp_path / "back")
    assert fault.times == 0
    assert sha256_of(tmp_path / "back" / "weights.bin") == sha256_of(folder / "weights.bin")
    assert s3.unfinished() == 0


def test_a_completion_whose_answer_got_lost_is_one(
    s3: S3Server, store: ArtifactStore, folder: Path, tmp_path: Path
) -> None:
    """Asked again, the store may say that it does not know the upload: it is an object by then."""
    s3.faults.append(Fault("POST", 1, query="uploadId", reset=True, do_first=True))
    s3.faults.append(Fault("POST", 1, query="uploadId", status="404 Not Found", body=NO_SUCH_UPLOAD))
    store.fetch(store.put_folder(folder), tmp_path / "back")
    assert [fault.times for fault in s3.faults] == [0, 0]
    assert sha256_of(tmp_path / "back" / "weights.bin") == sha256_of(folder / "weights.bin")


def test_an_upload_that_somebody_took_back_is_no_completion(s3: S3Server, store: ArtifactStore) -> None:
    """Nor is an object of the same name and size that another tool had brought."""
    content, zeros = os.urandom(LARGE), b"\0" * LARGE
    sha256 = hashlib.sha256(content).hexdigest()
    for before in ({}, {key_of(sha256): zeros}):
        for key, value in before.items():
            store.storage.put(key.removeprefix("some/prefix/"), io.BytesIO(value))
        s3.faults.append(Fault("POST", 1, query="uploadId", status="404 Not Found", body=NO_SUCH_UPLOAD))
        with pytest.raises(FileNotFoundError):
            store.put(sha256, io.BytesIO(content))
        assert s3.objects() == before


def test_a_file_that_changes_meanwhile_is_not_stored_and_its_upload_is_taken_back(
    s3: S3Server, store: ArtifactStore
) -> None:
    with pytest.raises(CorruptArtifact, match="changed while"):
        store.put("0" * 64, io.BytesIO(os.urandom(LARGE)))
    with pytest.raises(CorruptArtifact, match="changed while"):
        store.put("0" * 64, io.BytesIO(b"small"))
    assert s3.objects() == {}
    assert s3.unfinished() == 0


def test_a_store_that_stays_away_is_an_error_to_try_again_later(s3: S3Server) -> None:
    storage = open_storage(f"s3://{BUCKET}/p", patient=False)
    s3.down = True
    with pytest.raises(StoreUnavailable) as caught:
        storage.put("a", io.BytesIO(b"x"))
    assert (caught.value.code, caught.value.retryable) == ("artifact_store_unavailable", True)
    with pytest.raises(StoreUnavailable):
        storage.check()


def test_refused_credentials_and_a_missing_bucket_say_so(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    s3.faults.append(Fault("PUT", 1, status="403 Forbidden", body=DENIED))
    with pytest.raises(StoreRefused) as refused:
        open_storage(f"s3://{BUCKET}").put("a", io.BytesIO(b"x"))
    assert "AccessDenied" in refused.value.detail
    assert "AWS_ACCESS_KEY_ID" in (refused.value.hint or "")
    missing = open_storage("s3://no-such-bucket/p")
    for ask in (missing.check, lambda: missing.put("a", io.BytesIO(b"x")), lambda: missing.open("a")):
        with pytest.raises(NoSuchBucket, match="no-such-bucket"):
            ask()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(StoreRefused, match="no credentials"):
        open_storage(f"s3://{BUCKET}").check()


def test_damage_is_found_when_it_is_read_and_mended_when_it_is_stored_again(
    s3: S3Server, store: ArtifactStore, folder: Path, tmp_path: Path
) -> None:
    manifest = store.put_folder(folder)
    name = f"blobs/{sha256_of(folder / 'weights.bin')[:2]}/{sha256_of(folder / 'weights.bin')}"
    store.storage.put(name, io.BytesIO(b"\0" * LARGE))  # as another tool would: of the same size
    with pytest.raises(CorruptArtifact, match="damaged"):
        store.fetch(manifest, tmp_path / "back")
    store.put_folder(folder)
    store.fetch(manifest, tmp_path / "back")
    store.remove([manifest.files[0]["sha256"]])
    with pytest.raises(CorruptArtifact, match="missing"):
        store.open(manifest.files[0]["sha256"])


def test_an_upload_cut_off_by_a_kill_is_found_and_its_space_given_back(s3: S3Server) -> None:
    code = (
        "import io, os, sys; from steerboard.platform.storage.from_url import open_storage\n"
        "class Endless(io.RawIOBase):\n"
        "    sent = 0\n"
        "    def read(self, size=-1):\n"
        f"        Endless.sent += size\n"
        f"        if Endless.sent > {3 * PART_BYTES}: os.kill(os.getpid(), 9)\n"
        "        return os.urandom(size)\n"
        f"open_storage('s3://{BUCKET}/p').put('blobs/a', Endless())"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == -9
    storage = open_storage(f"s3://{BUCKET}/p")
    assert storage.unfinished("other/") == []
    (left,) = storage.unfinished("blobs/")
    assert left.name.startswith("blobs/a\n")
    storage.remove_unfinished([left])
    storage.remove_unfinished([left])
    assert s3.unfinished() == 0
    assert s3.objects() == {}


def test_a_stored_file_is_seekable_and_listed(s3: S3Server) -> None:
    storage = open_storage(f"s3://{BUCKET}/p")
    content = os.urandom(20 << 20)
    assert storage.put("a/b", io.BytesIO(content)) == storage.size("a/b") == len(content)
    with storage.open("a/b") as file:
        for place, length in ((17 << 20, 4096), (5, 3), (len(content) - 4, 100), (len(content) + 5, 1)):
            file.seek(place)
            assert file.read(length) == content[place : place + length]
        storage.put("a/b", io.BytesIO(content[: (9 << 20) + 100]))  # shorter than what was opened
        file.seek(9 << 20)
        with pytest.raises(StoreUnavailable, match="incomplete answer"):
            file.read(len(content))
    storage.put("a/b", io.BytesIO(content))
    storage.put("c", io.BytesIO(b""))
    assert [(stored.name, stored.size) for stored in storage.files("")] == [("a/b", len(content)), ("c", 0)]
    assert storage.folders("") == ["a"]
    storage.remove(["a/b", "never there"])
    assert [stored.name for stored in storage.files("")] == ["c"]
    with pytest.raises(FileNotFoundError):
        storage.open("a/b")


@pytest.mark.long
def test_more_files_than_one_answer_holds_are_listed_and_removed(s3: S3Server) -> None:
    storage = open_storage(f"s3://{BUCKET}/p")
    for number in range(1005):
        storage.put(f"many/{number}", io.BytesIO(b""))
    names = [stored.name for stored in storage.files("many/")]
    assert len(names) == 1005
    storage.remove(names)
    assert list(storage.files("")) == []


@pytest.mark.long
def test_memory_stays_bounded_while_a_large_file_goes_through(s3: S3Server, tmp_path: Path) -> None:
    """The file goes through a process of its own, because the server keeps the objects in this one."""
    (tmp_path / "m").mkdir()
    with (tmp_path / "m" / "large").open("wb") as file:
        file.truncate(400 << 20)
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from steerboard.platform.storage.artifacts import ArtifactStore\n"
        f"store = ArtifactStore('s3://{BUCKET}/p'); folder = Path({str(tmp_path)!r})\n"
        "store.storage.check(); before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "store.fetch(store.put_folder(folder / 'm'), folder / 'back')\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (tmp_path / "back" / "large").stat().st_size == 400 << 20
    assert int(done.stdout) < 250


@pytest.mark.parametrize("url", ["gs://bucket", "s3://", "http://somewhere"])
def test_a_url_of_no_store_is_refused(url: str) -> None:
    with pytest.raises(BadStoreUrl):
        ArtifactStore(url)
