"""The cache of a worker's disk keeps within its size, and takes nothing away from anyone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from steerboard.platform.storage.local_cache import LocalCache

MB = 1 << 20


class Bench:
    """Entries of one file of `mb` megabytes; `made` counts how often each was made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made: list[str] = []

    def take(self, key: str, holds: ExitStack, mb: int = 4, limit: int = 10, intact: bool = True) -> Path:
        def fill(folder: Path) -> None:
            self.made.append(key)
            (folder / "file").write_bytes(b"\0" * mb * MB)

        return LocalCache(self.folder, limit).take(
            "models", key, size=mb * MB, fill=fill, intact=lambda _: intact, holds=holds
        )

    def use(self, key: str, **options: int | bool) -> Path:
        with ExitStack() as holds:
            return self.take(key, holds, **options)  # type: ignore[arg-type]

    def held(self) -> set[str]:
        return {path.name for path in (self.folder / "models").iterdir() if path.is_dir()}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "cache")


def test_the_least_recently_used_goes_first(bench: Bench) -> None:
    for key in ("a", "b", "a", "c"):
        bench.use(key)
    assert bench.held() == {"a", "c"}
    assert bench.made == ["a", "b", "c"]
    bench.use("b")
    assert bench.held() == {"c", "b"}


def test_what_is_in_use_stays_even_when_the_cache_grows_beyond_its_size(bench: Bench) -> None:
    with ExitStack() as holds:
        kept = bench.take("a", holds)
        for key in ("b", "c"):
            bench.take(key, holds)
        assert bench.held() == {"a", "b", "c"}
        assert (kept / "file").stat().st_size == 4 * MB
    bench.use("d")
    assert bench.held() == {"a", "d"}  # the one that was let go last


def test_what_another_process_uses_stays_until_it_is_killed(bench: Bench) -> None:
    bench.use("a")
    code = (
        "from contextlib import ExitStack; from pathlib import Path; import sys\n"
        "from steerboard.platform.storage.local_cache import LocalCache\n"
        f"holds, cache = ExitStack(), LocalCache(Path({str(bench.folder)!r}), 10)\n"
        "cache.take('models', 'a', size=0, fill=None, intact=None, holds=holds)\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    bench.use("b")
    bench.use("c")
    assert bench.held() == {"a", "c"}
    process.send_signal(signal.SIGKILL)
    process.wait()
    bench.use("d")
    assert bench.held() == {"c", "d"}


def test_a_fetch_cut_off_by_a_kill_is_cleared_away(bench: Bench) -> None:
    code = (
        "from contextlib import ExitStack; from pathlib import Path; import os\n"
        "from steerboard.platform.storage.local_cache import LocalCache\n"
        "def fill(folder):\n"
        "    (folder / 'file').write_bytes(b'x' * (6 << 20)); os.kill(os.getpid(), 9)\n"
        f"LocalCache(Path({str(bench.folder)!r}), 10).take('models', 'a', size=0, fill=fill, intact=None, "
        "holds=ExitStack())"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == -9
    assert bench.held() == {".a.partial"}
    bench.use("b", mb=8)
    assert bench.held() == {"b"}


def test_unchanged_files_are_not_read_again_and_changed_ones_are(bench: Bench) -> None:
    folder = bench.use("a")
    (bench.folder / "models" / "a.stamp").unlink()
    bench.use("a", intact=True)  # reads it, finds it whole, and remembers that
    bench.use("a", intact=False)  # is not even asked
    assert bench.made == ["a"]
    before = (folder / "file").stat()
    (folder / "file").chmod(0o644)
    with (folder / "file").open("r+b") as file:
        file.write(b"x")
    os.utime(folder / "file", ns=(before.st_atime_ns, before.st_mtime_ns))
    bench.use("a", intact=False)
    assert bench.made == ["a", "a"]
    assert (folder / "file").read_bytes()[:1] == b"\0"


def test_without_a_size_it_leaves_half_of_the_disk(bench: Bench, tmp_path: Path) -> None:
    with ExitStack() as holds:
        LocalCache(tmp_path / "cache").take(
            "models", "a", size=0, fill=lambda folder: (folder / "f").touch(), intact=lambda _: True, holds=holds
        )
    assert bench.held() == {"a"}


def test_a_damaged_entry_that_somebody_uses_is_replaced_only_when_its_replacement_is_whole(bench: Bench) -> None:
    with ExitStack() as user, ExitStack() as next_one:
        used = bench.take("a", user) / "file"
        used.chmod(0o644)
        used.write_bytes(b"damaged")
        opened = used.open("rb")
        there: list[bytes] = []

        def fill(folder: Path) -> None:
            there.append(used.read_bytes())
            (folder / "file").write_bytes(b"whole")

        cache = LocalCache(bench.folder, 10)
        cache.take("models", "a", size=0, fill=fill, intact=lambda _: False, holds=next_one)
        assert there == [b"damaged"]
        assert used.read_bytes() == b"whole"
        assert opened.read() == b"damaged"
        opened.close()
    assert bench.held() == {"a"}
