"""A small process that owns one server and ends it when its own parent is gone, however that ended.

`python guardian.py SPEC` with SPEC as JSON. Standard input is a pipe that only the parent holds: a word in it asks for
an orderly stop, its end of file without one means that the parent is gone, and then there is little time. Standard
library only, and nothing of ours, so it starts quickly and cannot fail with the platform. Prints one line of JSON when
the server has started.

Stages have another guardian (`steerboard_workers.guardian`): a server is stopped in order, by one signal after the
other, on macOS too; a stage has a lease and limits of memory, may be a fork of a warm parent, and is killed
immediately.

The server inherits the lock file's descriptor, so the lock is held exactly as long as any process of it lives: who
gets the lock knows that a pid file it finds is stale.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
from typing import Any

ORPHAN_SECONDS = 2.0  # of patience for each signal when the parent is gone
LOCKED = 75  # exit status: another live server holds the lock
_PR_SET_PDEATHSIG = 1


def take_lock(path: str, seconds: float) -> int | None:
    """An inheritable descriptor of the locked file, or None when it stays locked for that long."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(descriptor)
                return None
            time.sleep(0.05)
        else:
            os.set_inheritable(descriptor, True)
            return descriptor


def start(spec: dict[str, Any], lock: int | None) -> subprocess.Popen[bytes]:
    death_signal = int(spec.get("death_signal", signal.SIGKILL))

    def die_with_guardian() -> None:
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, death_signal)

    with open(spec["log"], "ab") as log:
        return subprocess.Popen(
            spec["command"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=spec.get("cwd"),
            env={**os.environ, **spec.get("env", {})},
            pass_fds=(*spec.get("inherit", ()), *(() if lock is None else (lock,))),
            start_new_session=True,
            preexec_fn=die_with_guardian,
        )


def stop(child: subprocess.Popen[bytes], signals: list[list[float]], longest: float) -> None:
    """Each [signal, seconds to wait] in turn until the server has ended, then kill its group."""
    for number, seconds in signals:
        if child.poll() is not None:
            break
        child.send_signal(int(number))
        try:
            child.wait(min(seconds, longest))
        except subprocess.TimeoutExpired:
            continue
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def main() -> int:
    spec = json.loads(sys.argv[1])
    asked, asking = os.pipe()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: os.write(asking, b"x"))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ended, ending = os.pipe()
    signal.signal(signal.SIGCHLD, lambda *_: os.write(ending, b"x"))
    lock = None
    if spec.get("lock"):
        lock = take_lock(spec["lock"], spec.get("lock_seconds", 20.0))
        if lock is None:
            return LOCKED
    for stale in spec.get("remove", []):
        if os.path.lexists(stale):
            os.unlink(stale)
    child = start(spec, lock)
    for descriptor in (*spec.get("inherit", ()), *(() if lock is None else (lock,))):
        os.close(descriptor)
    longest = ORPHAN_SECONDS
    try:
        print(json.dumps({"pid": child.pid}), flush=True)
        while child.poll() is None:
            ready, _, _ = select.select([0, asked, ended], [], [], 5.0)
            if 0 in ready:
                longest = float("inf") if os.read(0, 4096) else ORPHAN_SECONDS
                break
            if asked in ready:
                longest = float("inf")
                break
            if ended in ready:
                os.read(ended, 4096)
    finally:
        stop(child, spec["stop"], longest)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


if __name__ == "__main__":
    sys.exit(main())
