"""Code that a model wrote gets no further than its own arithmetic."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steerboard_workers.stages.harness import sandbox, sandboxed
from steerboard_workers.stages.harness.sandbox import CodeEval, SandboxUnavailable, passes

# Has its parent killed: who writes to a pipe lets a signal be sent to the owner of the other end.
_KILLS_ITS_PARENT = """
import fcntl, os
reading, writing = os.pipe()
fcntl.fcntl(reading, 10, 9)  # F_SETSIG, SIGKILL
fcntl.fcntl(reading, fcntl.F_SETOWN, os.getppid())
fcntl.fcntl(reading, fcntl.F_SETFL, 0x2000)  # O_ASYNC
os.write(writing, b"x")
"""
# Writes whatever could be the word, of all that frames and the garbage collector know, wherever it can be written.
_LOOKS_FOR_THE_WORD = """
import gc, os, sys
seen, left, frame = set(), gc.get_objects(), sys._getframe()
while frame is not None:
    left += [frame.f_globals, frame.f_builtins, *frame.f_locals.values()]
    frame = frame.f_back
while left:
    one = left.pop()
    if id(one) in seen:
        continue
    seen.add(id(one))
    left += gc.get_referents(one)
    text = one.encode() if isinstance(one, str) else one
    if isinstance(text, bytes) and len(text) == 32 and not text.translate(None, b"0123456789abcdef"):
        for descriptor in range(64):
            try:
                os.write(descriptor, text)
            except OSError:
                pass
os._exit(0)
"""


@pytest.fixture(scope="module", autouse=True)
def _sandbox() -> None:
    try:
        sandbox.require()
    except SandboxUnavailable as why:
        pytest.skip(f"this machine has no sandbox: {why.detail}")


def test_code_that_ends_passes_and_an_exception_fails() -> None:
    assert passes("import math, re, json, collections, itertools, datetime, heapq, random\nassert math.sqrt(4) == 2")
    assert passes("print('x' * 1_000_000)")
    assert not passes("assert 1 == 2")
    assert not passes("def broken(:")


@pytest.mark.parametrize(
    "code",
    [
        "import os; os._exit(0)",
        "raise SystemExit(0)",
        "import sys; sys.exit()",
        "import os, sys; f = sys._getframe(1).f_locals; os.write(f['verdict'], f['word']); os._exit(0)",
        pytest.param(_LOOKS_FOR_THE_WORD, id="looks for the word"),
    ],
)
def test_to_leave_early_is_no_way_to_pass(code: str) -> None:
    assert not passes(code)


@pytest.mark.parametrize(
    "code",
    [
        "open('/etc/passwd').read()",
        "import os; os.listdir('/')",
        "open('/etc/hostname')",
        "open('here', 'w')",
        "open('/tmp/there', 'a')",
        "open('/proc/self/environ')",
        "import os; os.chmod('.', 0o777)",
        "import os; os.mkdir('x')",
        "import os; os.unlink('/tmp')",
        "import socket; socket.socket()",
        "import socket; socket.create_connection(('127.0.0.1', 22))",
        "import os; os.fork()",
        "import subprocess; subprocess.run(['true'])",
        "import threading; threading.Thread(target=print).start()",
        "import os; os.kill(1, 0)",
        "import os; os.kill(os.getppid(), 9)",
        "import os; os.pipe()",
        "import fcntl, os; fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid())",
        "import fcntl; fcntl.fcntl(0, 10, 9)",
        "import fcntl, os, struct; fcntl.fcntl(0, 15, struct.pack('ii', 1, os.getppid()))",
        "import fcntl; fcntl.fcntl(0, fcntl.F_SETFL, 0x2000)",
        "import fcntl; fcntl.ioctl(0, 0x5452, (1).to_bytes(4, 'little'))",
        "import os; os.setpriority(os.PRIO_PROCESS, 0, 5)",
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (600, 600))",
        "import ctypes; ctypes.CDLL(None).syscall(435, 0, 0) == -1 and 1 / 0",
        "import os; assert set(os.environ) - {'LC_CTYPE'}",
        "'x' * (2 << 30)",
    ],
)
def test_what_is_out_of_its_reach(code: str) -> None:
    assert not passes(code)


def test_it_cannot_have_others_killed() -> None:
    assert _survives(_KILLS_ITS_PARENT, Path(sandboxed.__file__))


def test_nor_where_its_calls_are_not_looked_at(tmp_path: Path) -> None:
    """Landlock keeps signals from others by itself."""
    if ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1) < 6:
        pytest.skip("this kernel's Landlock knows no signals")
    every_fcntl = ("*_asked_for(fcntl, _FCNTL), ", ""), ("numbers.split()]", "numbers.split()] + [fcntl, 59, 293]")
    assert _survives(_KILLS_ITS_PARENT, _changed(tmp_path, *every_fcntl))
    assert not _survives(_KILLS_ITS_PARENT, _changed(tmp_path, *every_fcntl, (">= _SCOPES", "< 0")))


def _survives(code: str, program: Path) -> bool:
    """Whether a process that has the code run is there afterwards."""
    run = (
        "from pathlib import Path; from steerboard_workers.stages.harness import sandbox; "
        f"sandbox._PROGRAM = Path({str(program)!r}); sandbox.passes({code!r}); print('there')"
    )
    return subprocess.run([sys.executable, "-c", run], capture_output=True, text=True).stdout == "there\n"


def test_endless_code_is_ended() -> None:
    began = time.monotonic()
    assert not passes("while True: pass", seconds=1)
    assert time.monotonic() - began < 60


def test_the_metric_of_the_tasks_runs_the_code_there() -> None:
    wrong, right = "def add(a, b): return a * b", "def add(a, b): return a + b"
    shares, results = CodeEval().compute(
        references=["assert add(2, 3) == 5", "assert add(1, 1) == 2"],
        predictions=[[wrong, right], [right, right]],
        k=[1, 2, 3],
    )
    # The first problem has one of two right: a chance of 1/2 with one try, 1 with two. There are no three.
    assert shares == {"pass@1": 0.75, "pass@2": 1.0}
    assert [[verdict["passed"] for _, verdict in results[at]] for at in (0, 1)] == [[False, True], [True, True]]


def test_where_it_cannot_be_confined_no_code_is_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # The same program on a kernel that has no such system call.
    monkeypatch.setattr(sandbox, "_PROGRAM", _changed(tmp_path, ("= 444, 445, 446", "= 9444, 9445, 9446")))
    with pytest.raises(SandboxUnavailable) as refused:
        passes("pass")
    assert "5.13" in (refused.value.hint or "")


def _changed(folder: Path, *changes: tuple[str, str]) -> Path:
    text = Path(sandboxed.__file__).read_text()
    for this, other in changes:
        assert this in text
        text = text.replace(this, other)
    path = folder / "sandboxed.py"
    path.write_text(text)
    return path
