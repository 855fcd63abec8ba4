"""The artifact store is killed, or loses power, between any two operations of the file system, and shows whole blobs
or none."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from steerboard.platform.storage import disk
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.platform.storage.local_cache import LocalCache
from steerboard.registry.local_copies import materialise

FILES = {"weights.bin": bytes(range(256)) * 12_000, "sub/config.json": b"{}", "empty.txt": b""}
_LONGEST = 400


def _die_before_operation(number: int, journal: int) -> None:
    """Kills this process, a child, when operation `number` of the file system is about to happen. A write counts twice:
    before it, and in the middle of it. What a loss of power would matter to is written to `journal`."""
    left = number

    def note(what: str, *values: object) -> None:
        os.write(journal, (" ".join(map(str, (what, *values))) + "\n").encode())

    def step() -> None:
        nonlocal left
        if left == 0:
            left = -1  # what follows is seen too
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    fsync, write = os.fsync, disk._Bounded.write

    def stepped_fsync(descriptor: Any) -> None:
        step()
        fsync(descriptor)
        status = os.fstat(descriptor)
        note("synced", status.st_ino, status.st_size)

    def stepped_write(file: Any, data: Any) -> int:
        step()
        half = memoryview(data).cast("B")[: memoryview(data).nbytes // 2]
        written = write(file, half) if len(half) else 0
        step()
        return written + write(file, memoryview(data).cast("B")[written:])

    os.fsync = stepped_fsync
    disk._Bounded.write = stepped_write  # type: ignore[method-assign, assignment]

    def see(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" or event.startswith("os."):
            step()
        if event == "os.rename":
            note("renamed", os.fspath(arguments[1]))

    sys.addaudithook(see)


def lose_power(place: Path, journal: Path) -> None:
    """All that a file system may forget: what of a file was never synced, and names in folders that were not synced
    since."""
    sizes: dict[int, int] = {}
    names: set[Path] = set()
    inodes = {path.stat().st_ino: path for path in place.rglob("*")}
    for line in journal.read_text().splitlines():
        what, _, values = line.partition(" ")
        if what == "renamed":
            names.add(Path(values))
        else:
            inode, size = map(int, values.split())
            sizes[inode] = size
            names = {name for name in names if name.parent != inodes.get(inode)}
    for path in place.rglob("*"):
        if path in names:
            path.unlink()
        elif path.is_file():
            os.truncate(path, min(path.stat().st_size, sizes.get(path.stat().st_ino, 0)))


def killed_at(number: int, act: Callable[[], object], journal: Path) -> bool:
    """Whether `act`, in a child, was killed before its operation `number`; it has ended well if not."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            _die_before_operation(number, os.open(journal, os.O_WRONLY | os.O_CREAT))
            act()
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or status == 0
    return os.WIFSIGNALED(status)


def kills(act: Callable[[Path], Callable[[], object]], places: Path, *, power: bool = False) -> Iterator[Path]:
    """Every state that a kill leaves behind, or with `power` that a loss of it does, each in a place of its own; the
    last one is that of no kill."""
    for number in range(_LONGEST):
        place = places / str(number)
        place.mkdir(parents=True)
        journal = places / f"{number}.journal"
        killed = killed_at(number, act(place), journal)
        if power:
            lose_power(place, journal)
        yield place
        if not killed:
            assert number > 10, "hardly an operation was seen"
            return
    raise AssertionError(f"it does not end within {_LONGEST} operations")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / "model" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "model"


def content_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.long
def test_a_blob_is_whole_or_not_there_wherever_storing_it_is_killed(folder: Path, tmp_path: Path) -> None:
    unfinished = 0
    for place in kills(lambda place: lambda: ArtifactStore(f"file://{place}").put_folder(folder), tmp_path / "stores"):
        store = ArtifactStore(f"file://{place}")
        for sha256, _ in store.blobs():
            assert hashlib.sha256(b"".join(store.read(sha256))).hexdigest() == sha256
        manifest = store.put_folder(folder)
        store.fetch(manifest, tmp_path / "back" / place.name)
        assert content_of(tmp_path / "back" / place.name) == FILES
        left = store.unfinished()
        unfinished += len(left)
        store.storage.remove_unfinished(left)
        files = [path for path in place.rglob("*") if path.is_file()]
        assert sorted(path.name for path in files) == sorted({file["sha256"] for file in manifest.files})
    assert unfinished > 5, "no kill left anything to be collected"


@pytest.mark.long
def test_a_blob_is_whole_or_not_there_wherever_the_power_fails_and_stays_once_it_is_stored(
    folder: Path, tmp_path: Path
) -> None:
    def put(place: Path) -> Callable[[], object]:
        return lambda: ArtifactStore(f"file://{place}").put_folder(folder)

    for place in kills(put, tmp_path / "stores", power=True):
        store = ArtifactStore(f"file://{place}")
        there = {sha256 for sha256, _ in store.blobs()}
        for sha256 in there:
            assert hashlib.sha256(b"".join(store.read(sha256))).hexdigest() == sha256
    assert there == {hashlib.sha256(content).hexdigest() for content in FILES.values()}


def test_a_folder_is_whole_or_not_there_wherever_fetching_it_is_killed(folder: Path, tmp_path: Path) -> None:
    store = ArtifactStore(f"file://{tmp_path / 'store'}")
    manifest = store.put_folder(folder)
    for place in kills(lambda place: lambda: store.fetch(manifest, place / "back"), tmp_path / "fetched"):
        if (place / "back").exists():
            assert content_of(place / "back") == FILES
        store.fetch(manifest, place / "back")
        assert content_of(place / "back") == FILES


@pytest.mark.long
def test_a_copy_of_the_cache_is_whole_or_not_there_wherever_filling_it_is_killed(folder: Path, tmp_path: Path) -> None:
    store = ArtifactStore(f"file://{tmp_path / 'store'}")
    manifest = store.put_folder(folder)

    def take(place: Path) -> Path:
        with ExitStack() as holds:
            return materialise(store, manifest, LocalCache(place, 100), holds)

    for place in kills(lambda place: lambda: take(place), tmp_path / "caches"):
        entry = place / "models" / manifest.hash
        if entry.exists():
            assert content_of(entry) == FILES
        assert content_of(take(place)) == FILES
        assert not list(place.rglob("*.partial"))
