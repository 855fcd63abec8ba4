"""The guardian leaves nothing behind, whichever process dies first."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steerboard_workers import guardian


class Guarded:
    """A guardian with a command below it. `marker` is an argument by which the command's processes are found."""

    def __init__(self, command: list[str], memory: int = 0, allocated: int = 0) -> None:
        status_read, status_write = os.pipe()
        limits = [str(memory), str(allocated)]
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", guardian.__file__, str(status_write), *limits, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=(status_write,),
            start_new_session=True,
        )
        os.close(status_write)
        self._status = os.fdopen(status_read)

    def extend(self, seconds: float) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"%f\n" % (guardian.now() + seconds))
        self.process.stdin.flush()

    def wait_for_output(self, line: bytes) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == line

    def status(self) -> str:
        """The guardian's report on the command's end; empty when it did not end by itself."""
        text = self._status.read().strip()
        self.process.wait(timeout=10)
        return text


def alive(marker: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if marker.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def gone(marker: str) -> bool:
    end = time.monotonic() + 5
    while time.monotonic() < end:
        if not alive(marker):
            return True
        time.sleep(0.01)
    return False


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
    # For a moment a process that was just started has no command line to be found by.
    end = time.monotonic() + 5
    while len(alive(marker)) < 4 and time.monotonic() < end:
        time.sleep(0.01)
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
    assert 0.1 < time.monotonic() - started < 3
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
