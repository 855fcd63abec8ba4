"""The guardian: the parent of a process that may not outlive the one that had it started, and the end of it.

Standard library only, started by path, so that it is up in milliseconds and needs nothing of what it guards.

    python -I -S guardian.py STATUS_DESCRIPTOR TERMS COMMAND...

TERMS are those of `Terms`, as JSON. A process that has its imports done already can become a guardian of a fork of
itself (`guard`; see `steerboard_workers.stage_parent`).

It must lead a session of its own. Descriptor 0 is a pipe that its owner alone holds. At its end of file the owner is
gone, and everything below the guardian is killed. So it is when the command ends by itself: daemons that it left behind
must not hold a device, a lock or a port either. The status descriptor receives a line `started PID`, or `locked`, and
at the end `exit CODE` or `signal NUMBER` of the command, `lease over`, or `memory BYTES` when it used that much and so
more than it may; nothing when it was killed with its owner.

A stage is leased: each line of the pipe is a deadline, in seconds of CLOCK_BOOTTIME, until which the supervisor's
lease is certainly good. When the last one has passed, no one may still be on the device, and all of it is killed. A
server has signals to be stopped by: a line `stop` asks for that, and so do SIGTERM and SIGHUP; when the owner is gone
there is little time for each.

The guardian is the subreaper of its descendants, so also those that made a session of their own (torchrun's ranks,
engine processes) are found; macOS has none, and leaves these. Should the guardian itself be killed, the command dies
with it (PDEATHSIG), and a supervisor, who sees its pipe close, kills whatever still carries the run's mark.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

_SET_PDEATHSIG = 1
_SET_CHILD_SUBREAPER = 36
FIRST_DEADLINE_SECONDS = 30.0
# The patience for each signal when the owner is gone.
ORPHAN_SECONDS = 2.0
# How soon memory is looked at again: the less is left, the sooner, since it may be filled at this rate.
_FILL_BYTES_PER_SECOND = 4 << 30
_LOOK_SECONDS = (0.05, 1.0)
_STOP = "stop"
# A Ctrl-C on the terminal reaches the owner, who decides.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Terms(NamedTuple):
    """memory: bytes that the command and all its descendants may use together. What counts is memory in use, not
    address space, of which CUDA and vLLM reserve far more than they use. allocated: bytes that each single process may
    allocate (RLIMIT_DATA): a process that is refused memory can still report it, one that is killed cannot. 0 limits
    neither.

    leased: it ends when its last deadline has passed, and should the machine run out of memory, it is what the kernel
    takes first. stop: (signal, seconds of patience), one after the other; without any it is killed immediately.
    death_signal: what the command gets should the guardian be killed.

    lock: a file, locked for as long as any process of the command lives: who gets the lock knows that a pid file that
    it finds is stale. It is waited for up to lock_seconds. remove: files to remove once it is held.
    """

    memory: int = 0
    allocated: int = 0
    leased: bool = False
    stop: Sequence[tuple[int, float]] = ()
    death_signal: int = signal.SIGKILL
    lock: str | None = None
    lock_seconds: float = 20.0
    remove: Sequence[str] = ()

    @classmethod
    def of(cls, document: str) -> Terms:
        return cls(**json.loads(document))

    def json(self) -> str:
        defaults = self._field_defaults
        return json.dumps({name: value for name, value in self._asdict().items() if value != defaults[name]})


def now() -> float:
    """Runs on while the machine sleeps, as the lease does; macOS has no such clock, and no leased process."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


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


def start(status_descriptor: int, terms: Terms) -> int:
    """Fork within this process group. Returns the child's process id and, in the child, which is ready to run the
    command, 0."""
    guardian = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        prctl(_SET_PDEATHSIG, terms.death_signal)
        if os.getppid() != guardian:  # it died before the line above
            os._exit(1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.close(status_descriptor)
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        if terms.leased:
            be_taken_first()
        if terms.allocated:
            resource.setrlimit(resource.RLIMIT_DATA, (terms.allocated, terms.allocated))
    except OSError as error:
        os.write(2, f"cannot start: {error}\n".encode())
        os._exit(127)
    return 0


def be_taken_first() -> None:
    """Let the kernel take this process first when memory runs out. Any process may do so; descendants inherit it."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def used_memory() -> int:
    """Bytes that all descendants have in use, without the files that they have mapped."""
    kilobytes = 0
    for pid in descendants():
        try:
            with open(f"/proc/{pid}/status", "rb") as file:
                for line in file:
                    if line.startswith((b"RssAnon:", b"RssShmem:")):
                        kilobytes += int(line.split()[1])
        except OSError:
            continue
    return kilobytes << 10


def descendants() -> list[int]:
    """Process ids of everything below this process, nearest first; none where there is no /proc."""
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    # The command name, in brackets, may itself hold spaces and brackets.
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
            parents.setdefault(parent, []).append(int(entry))
    pids = list(parents.get(os.getpid(), []))
    for pid in pids:
        pids.extend(parents.get(pid, []))
    return pids


def kill_everything() -> None:
    """Kill all descendants, and those that they start meanwhile, then this whole process group."""
    for _ in range(100):
        below = descendants()
        for pid in below:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        reap(None)
        if not below:
            break
        time.sleep(0.01)
    os.killpg(0, signal.SIGKILL)


def reap(child: int | None) -> str | None:
    """Collect every process that has ended. Returns how `child` ended if it was among them."""
    ending = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ending
        if pid == 0:
            return ending
        if pid == child:
            signalled = os.WIFSIGNALED(status)
            ending = f"signal {os.WTERMSIG(status)}" if signalled else f"exit {os.WEXITSTATUS(status)}"


def watch(child: int, terms: Terms) -> str | None:
    """Wait for the end of the command, of its memory or of the lease, or for a word to stop it, and return which; None
    when the owner has gone."""
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    for number in (signal.SIGCHLD, *(_SIGNALS[1:] if terms.stop else ())):
        signal.signal(number, lambda *_: None)
    deadline = now() + FIRST_DEADLINE_SECONDS if terms.leased else float("inf")
    pending = b""
    look_at = now() if terms.memory else float("inf")
    while True:
        if now() >= look_at:
            used = used_memory()
            if used > terms.memory:
                return f"memory {used}"
            shortest, longest = _LOOK_SECONDS
            look_at = now() + min(longest, max(shortest, (terms.memory - used) / _FILL_BYTES_PER_SECOND))
        ended = reap(child)
        if ended is not None:
            return ended
        left = deadline - now()
        if left <= 0:
            return "lease over"
        patience = min(left, max(0.0, look_at - now()))
        ready = select.select([0, wake_read], [], [], None if patience == float("inf") else patience)[0]
        if wake_read in ready and set(os.read(wake_read, 4096)) - {signal.SIGCHLD}:
            return _STOP
        if 0 in ready:
            data = os.read(0, 4096)
            if not data:
                return None
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                if line == _STOP.encode():
                    return _STOP
                deadline = float(line)


def stop(child: int, terms: Terms, longest: float) -> str | None:
    """Each signal in turn until the command has ended. Returns how it did; None when it has to be killed."""
    for number, seconds in terms.stop:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)
        patient_until = time.monotonic() + min(seconds, longest)
        while time.monotonic() < patient_until:
            ended = reap(child)
            if ended is not None:
                return ended
            time.sleep(0.01)
    return None


def guard(status_descriptor: int, terms: Terms) -> None:
    """Become the guardian of a fork of this process, and end with it. Returns in the fork alone."""
    os.set_inheritable(status_descriptor, False)
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    prctl(_SET_CHILD_SUBREAPER, 1)
    lock = None
    if terms.lock is not None:
        lock = take_lock(terms.lock, terms.lock_seconds)
        if lock is None:
            tell(status_descriptor, "locked")
            os._exit(1)
    for stale in terms.remove:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(stale)
    child = start(status_descriptor, terms)
    if not child:
        return
    if lock is not None:
        os.close(lock)
    tell(status_descriptor, f"started {child}")
    ended = watch(child, terms)
    if ended in (None, _STOP):
        ended = stop(child, terms, ORPHAN_SECONDS if ended is None else float("inf"))
    if ended is not None:
        tell(status_descriptor, ended)
    kill_everything()


def tell(status_descriptor: int, line: str) -> None:
    """The owner, if it is still there."""
    with contextlib.suppress(OSError):
        os.write(status_descriptor, f"{line}\n".encode())


def main(arguments: list[str]) -> None:
    command = arguments[2:]
    guard(int(arguments[0]), Terms.of(arguments[1]))
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"cannot start {command[0]}: {error}\n".encode())
    os._exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
