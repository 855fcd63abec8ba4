"""Temporary folders are removed with the process that made them, also when it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from steerboard.platform.storage import scratch

_HOLD = """
import sys, time
from steerboard.platform.storage import scratch
with scratch.folder("model") as folder:
    (folder / "weights").write_bytes(b"x" * 1000)
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    yield tmp_path
    monkeypatch.setattr("tempfile.tempdir", None)


def held(place: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen([sys.executable, "-c", _HOLD], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    assert folder.parent == place
    return process, folder


def aged(path: Path) -> Path:
    os.utime(path, (time.time() - 3600,) * 2)
    return path


def test_only_what_killed_processes_of_ours_left_behind_is_swept(place: Path) -> None:
    dead, left = held(place)
    alive, used = held(place)
    others = [place / "tmpabc", place / "steerboard-0-0123456789ab"]
    for folder in others:
        folder.mkdir()
        aged(folder)
    victim = place / "victim"
    victim.mkdir()
    (place / "steerboard-tmp-link").symlink_to(victim)
    fresh = place / "steerboard-tmp-model-just-made"
    fresh.mkdir()
    # A file of a process that was killed before it took the file's name away.
    named = place / "steerboard-tmp-0abc"
    named.write_bytes(b"x")
    aged(named)
    try:
        dead.send_signal(signal.SIGKILL)
        dead.wait()
        aged(left)
        aged(used)
        assert scratch.sweep() == 2
        assert not left.exists()
        assert not named.exists()
        assert (used / "weights").exists()
        assert fresh.exists()
        assert victim.exists()
        assert all(folder.exists() for folder in others)
    finally:
        alive.kill()
        alive.wait()


def test_a_folder_is_private_and_gone_at_its_end(place: Path) -> None:
    before = os.umask(0)
    try:
        with scratch.folder("test") as folder:
            (folder / "file").write_text("x")
            assert folder.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)
    with scratch.file("a test") as file:
        file.write(b"x")
    assert list(place.iterdir()) == []
