"""Code that a model wrote, run in a process that has no network, no files of ours, and little time and memory."""

from __future__ import annotations

import math
import secrets
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steerboard_contracts.errors import SteerboardError
from steerboard_workers.stages.harness import sandboxed

_PROGRAM = Path(sandboxed.__file__)
SECONDS = 10
_STARTING = 5.0
_PROBE = """
import builtins, fcntl, os, socket
def refused(what):
    try:
        what()
    except OSError:
        return
    raise SystemExit
refused(lambda: open("/etc/passwd"))
refused(lambda: open("probe", "w"))
refused(socket.socket)
refused(os.fork)
refused(lambda: fcntl.fcntl(0, fcntl.F_SETOWN, os.getppid()))
"""


class SandboxUnavailable(SteerboardError):
    """This machine cannot confine the code of a model, so it is not run."""

    code = "sandbox_unavailable"
    title = "There is no sandbox for the model's code"


def require() -> None:
    """Try it out. Raises `SandboxUnavailable`."""
    if not passes(_PROBE):
        raise SandboxUnavailable("the sandbox for the model's code does not hold on this machine", hint=_HINT)


_HINT = (
    "It needs Linux 5.13 or newer on x86-64 or ARM, with Landlock and seccomp, which a container's profile may forbid. "
    "Run the task on another worker, or leave it out."
)


def passes(code: str, seconds: int = SECONDS) -> bool:
    """Whether the code runs to its end without an exception, within so many seconds and 1 GB.

    Raises `SandboxUnavailable`."""
    word = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="steerboard-code-") as folder:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_PROGRAM), str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={},
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdin, process.stdout:
            try:
                process.stdin.write(f"{word}\n{code}".encode(errors="replace"))
                process.stdin.close()
                process.wait(seconds + _STARTING)
            except (BrokenPipeError, subprocess.TimeoutExpired):
                pass
            finally:
                process.kill()
                process.wait()
            if process.returncode == sandboxed.UNAVAILABLE:
                raise SandboxUnavailable("this machine cannot sandbox the model's code", hint=_HINT)
            return process.returncode == 0 and process.stdout.read(len(word)) == word.encode()


class CodeEval:
    """Takes the place of `evaluate`'s metric of the same name, which runs code with all rights of its process."""

    def compute(
        self, *, references: Sequence[str], predictions: Sequence[Sequence[str]], k: Sequence[int] = (1,), **_: Any
    ) -> tuple[dict[str, float], dict[int, list[Any]]]:
        """pass@k (arXiv 2107.03374, Eq. 1), the mean over problems, and each candidate's outcome."""
        results: dict[int, list[Any]] = defaultdict(list)
        for problem, (test, candidates) in enumerate(zip(references, predictions, strict=True)):
            for place, candidate in enumerate(candidates):
                outcome = {"task_id": problem, "completion_id": place, "passed": passes(f"{candidate}\n{test}")}
                results[problem].append((place, outcome))
        counts = [(len(tries), sum(verdict["passed"] for _, verdict in tries)) for tries in results.values()]
        shares = {
            f"pass@{most}": sum(_pass_at(n, right, most) for n, right in counts) / len(counts)
            for most in k
            if counts and all(n >= most for n, _ in counts)
        }
        return shares, dict(results)


def _pass_at(n: int, right: int, k: int) -> float:
    return 1.0 - math.comb(n - right, k) / math.comb(n, k)
