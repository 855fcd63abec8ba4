"""The guardian leaves nothing behind, whichever process dies first."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from steerboard_contracts import guardian
from support.patience import PATIENCE, wait_until


class Guarded:
    """A guardian with a command below it. `marker` is an argument by which the command's processes are found."""

    def __init__(self, command: list[str], leased: bool = True, **terms: Any) -> None:
        status_read, status_write = os.pipe()
        document = guardian.Terms(leased=leased, **terms).json()
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", guardian.__file__, str(status_write), document, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(status_write,),
            start_new_session=True,
        )
        os.close(status_write)
        self._status = os.fdopen(status_read)

    def extend(self, seconds: float) -> None:
        self.send(b"%f\n" % (guardian.now() + seconds))

    def wait_for_output(self, line: bytes) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == line

    def status(self) -> str:
        """The guardian's report on the command's end; empty when it did not end by itself."""
        started, *ends = self.reports()
        assert started.startswith("started ")
        return ends[0] if ends else ""

    def reports(self) -> list[str]:
        lines = self._status.read().splitlines()
        self.process.wait(timeout=PATIENCE)
        return lines

    def send(self, word: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(word)
        self.process.stdin.flush()


def alive(marker: str) -> list[int]:
    pids = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if marker.encode() in (entry / "cmdline").read_bytes():
                    pids.append(int(entry.name))
            except OSError:
                continue
    return pids


def gone(marker: str) -> bool:
    return wait_until(lambda: not alive(marker), pause=0.01)


@pytest.fixture
def marker() -> str:
    return f"guarded-{os.getpid()}-{time.monotonic_ns()}"


# One process in the group, one in a session of its own (as torchrun's ranks and engine processes are).
FAMILY = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)", sys.argv[1]], start_new_session=True)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)", sys.argv[1]])
print("ready", flush=True)
time.sleep(float(sys.argv[2]))
"""


def family(marker: str, seconds: float = 1000) -> Guarded:
    guarded = Guarded([sys.executable, "-c", FAMILY, marker, str(seconds)])
    guarded.wait_for_output(b"ready")
    if seconds:  # For a moment a process that was just started has no command line to be found by.
        wait_until(lambda: len(alive(marker)) >= 4, pause=0.01)
    return guarded


@pytest.mark.parametrize(
    ("command", "status"),
    [("exit 0", "exit 0"), ("exit 3", "exit 3"), ("kill -9 $$", "signal 9"), ("kill -SEGV $$", "signal 11")],
)
def test_it_tells_how_the_command_ended(command: str, status: str) -> None:
    assert Guarded(["bash", "-c", command]).status() == status


def test_a_command_that_cannot_be_started_has_an_exit_code(tmp_path: Path) -> None:
    assert Guarded([str(tmp_path / "nothing")]).status() == "exit 127"


def test_the_end_of_the_supervisor_is_the_end_of_the_whole_family(marker: str) -> None:
    guarded = family(marker)
    assert len(alive(marker)) == 4
    assert guarded.process.stdin is not None
    guarded.process.stdin.close()
    assert guarded.status() == ""
    assert gone(marker)


def test_a_silent_supervisor_is_taken_for_lost_when_its_lease_ends(marker: str) -> None:
    guarded = family(marker)
    guarded.extend(0.3)
    started = time.monotonic()
    assert guarded.status() == "lease over"
    assert 0.1 < time.monotonic() - started < 30
    assert gone(marker)


def test_heartbeats_keep_the_command_alive() -> None:
    guarded = Guarded(["sleep", "0.8"])
    guarded.extend(0.4)
    for _ in range(6):
        time.sleep(0.15)
        if guarded.process.poll() is None:
            guarded.extend(0.4)
    assert guarded.status() == "exit 0"


def test_what_the_command_leaves_behind_does_not_outlive_it(marker: str) -> None:
    assert family(marker, seconds=0).status() == "exit 0"
    assert gone(marker)


def test_the_command_does_not_outlive_a_killed_guardian(marker: str) -> None:
    guarded = Guarded([sys.executable, "-c", "print('ready', flush=True); import time; time.sleep(1000)", marker])
    guarded.wait_for_output(b"ready")
    guarded.process.kill()
    assert guarded.status() == ""
    assert gone(marker)


def test_a_process_that_asks_for_too_much_memory_is_refused() -> None:
    assert Guarded([sys.executable, "-c", "bytearray(1 << 30)"], allocated=256 << 20).status() == "exit 1"


# Each of three processes stays well below what they may use together.
GREEDY = """
import os, sys, time
for _ in range(2):
    if os.fork() == 0:
        break
held = bytearray(b"x") * (120 << 20)
time.sleep(1000)
"""


def test_a_family_that_uses_too_much_memory_is_killed_and_the_figure_said(marker: str) -> None:
    kind, used = Guarded([sys.executable, "-c", GREEDY, marker], memory=256 << 20).status().split()
    assert kind == "memory"
    assert 256 << 20 < int(used) < 800 << 20
    assert gone(marker)


def test_address_space_that_is_not_used_costs_nothing() -> None:
    reserve = "import mmap; mmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE | 0x4000)"  # MAP_NORESERVE
    assert Guarded([sys.executable, "-c", reserve], memory=256 << 20).status() == "exit 0"


def test_the_command_and_not_its_guardian_is_what_the_kernel_takes_first() -> None:
    guarded = Guarded(["bash", "-c", "bash -c 'cat /proc/self/oom_score_adj'; sleep 1"])
    guarded.wait_for_output(b"1000")
    own = Path("/proc/self/oom_score_adj").read_text()
    assert Path(f"/proc/{guarded.process.pid}/oom_score_adj").read_text() == own
    assert guarded.status() == "exit 0"


# Ends in order at SIGTERM, unless it is to be deaf.
SERVER = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7) if "deaf" not in sys.argv else None)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)", sys.argv[1]], start_new_session=True)
print("ready", flush=True)
while True:
    time.sleep(1000)
"""


def server(*arguments: str, stop: tuple[tuple[int, float], ...] = ((signal.SIGTERM, 5.0),), **terms: Any) -> Guarded:
    guarded = Guarded([sys.executable, "-c", SERVER, *arguments], leased=False, stop=stop, **terms)
    guarded.wait_for_output(b"ready")
    return guarded


@pytest.mark.parametrize("how", ["word", "signal", "end of file"])
def test_a_server_is_stopped_in_order_and_leaves_no_daemon(marker: str, how: str) -> None:
    guarded = server(marker)
    assert guarded.process.stdin is not None
    if how == "word":
        guarded.send(b"stop\n")
    elif how == "signal":
        guarded.process.terminate()
    else:
        guarded.process.stdin.close()
    assert guarded.status() == "exit 7"
    assert gone(marker)


def test_a_server_that_does_not_listen_gets_the_next_signal_then_is_killed(marker: str) -> None:
    guarded = server(marker, "deaf", stop=((signal.SIGTERM, 0.2), (signal.SIGINT, 5.0)))
    guarded.send(b"stop\n")
    assert guarded.status() == "signal 2"  # as Python ends of a KeyboardInterrupt
    deaf = server(marker, "deaf", stop=((signal.SIGTERM, 0.2),))
    deaf.send(b"stop\n")
    assert deaf.status() == ""
    assert gone(marker)


def test_without_its_owner_a_server_has_little_time_for_each_signal(marker: str) -> None:
    guarded = server(marker, "deaf", stop=((signal.SIGTERM, 1000.0),))
    started = time.monotonic()
    assert guarded.process.stdin is not None
    guarded.process.stdin.close()
    assert guarded.status() == ""
    assert time.monotonic() - started < guardian.ORPHAN_SECONDS + 5
    assert gone(marker)


def test_a_server_outlives_the_first_deadline_of_a_stage_and_is_not_what_the_kernel_takes_first() -> None:
    guarded = Guarded(["bash", "-c", "cat /proc/self/oom_score_adj; sleep 1"], leased=False)
    guarded.wait_for_output(Path("/proc/self/oom_score_adj").read_bytes().strip())
    assert guarded.status() == "exit 0"


def test_a_lock_is_held_as_long_as_the_server_lives_and_stale_files_go_once_it_is(marker: str, tmp_path: Path) -> None:
    lock, stale = tmp_path / "lock", tmp_path / "server.pid"
    stale.write_text("12")
    first = server(marker, lock=str(lock), remove=[str(stale), str(tmp_path / "nothing")])
    assert not stale.exists()
    stale.write_text("13")
    second = Guarded(["true"], leased=False, lock=str(lock), lock_seconds=0.2, remove=[str(stale)])
    assert second.reports() == ["locked"]
    assert stale.exists()
    with lock.open() as file:
        with pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        first.send(b"stop\n")
        assert first.status() == "exit 7"
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
