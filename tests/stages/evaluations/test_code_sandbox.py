"""Code that a model wrote gets no further than its own arithmetic."""

from __future__ import annotations

import time

import pytest

from steerboard_workers.stages.harness import sandbox, sandboxed
from steerboard_workers.stages.harness.sandbox import CodeEval, SandboxUnavailable, passes


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


@pytest.mark.parametrize("code", ["import os; os._exit(0)", "raise SystemExit(0)", "import sys; sys.exit()"])
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
        "import os; os.setpriority(os.PRIO_PROCESS, 0, 5)",
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (600, 600))",
        "import ctypes; ctypes.CDLL(None).syscall(435, 0, 0) == -1 and 1 / 0",
        "import os; assert set(os.environ) - {'LC_CTYPE'}",
        "'x' * (2 << 30)",
    ],
)
def test_what_is_out_of_its_reach(code: str) -> None:
    assert not passes(code)


def test_endless_code_is_ended() -> None:
    began = time.monotonic()
    assert not passes("while True: pass", seconds=1)
    assert time.monotonic() - began < 6


def test_the_metric_of_the_tasks_runs_the_code_there() -> None:
    wrong, right = "def add(a, b): return a * b", "def add(a, b): return a + b"
    shares, results = CodeEval().compute(
        references=["assert add(2, 3) == 5", "assert add(1, 1) == 2"],
        predictions=[[wrong, right], [right, right]],
        k=[1, 2, 3],
    )
    # The first problem has one of two right: a chance of 1/2 with one try, 1 with two. There are no three.
    assert shares == {"pass@1": 0.75, "pass@2": 1.0}
    assert [[one["passed"] for _, one in results[at]] for at in (0, 1)] == [[False, True], [True, True]]


def test_where_it_cannot_be_confined_no_code_is_run(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setattr(sandbox, "_PROGRAM", _without_landlock(tmp_path))
    with pytest.raises(SandboxUnavailable) as refused:
        passes("pass")
    assert "5.13" in (refused.value.hint or "")


def _without_landlock(folder: object) -> str:
    """The same program on a kernel that has no such system call."""
    with open(sandboxed.__file__) as file:
        text = file.read()
    path = f"{folder}/sandboxed.py"
    with open(path, "w") as file:
        file.write(text.replace("= 444, 445, 446", "= 9444, 9445, 9446"))
    return path
