"""The guardian: the parent of a stage process, and the end of it.

Standard library only, started by path, so that it is up in milliseconds and needs nothing of what it guards.

    python -I -S guardian.py STATUS_DESCRIPTOR MEMORY_BYTES ALLOCATED_BYTES COMMAND...

A process that has its imports done already can become one of a fork of itself (`guard`; see `stage_parent`).

It must lead a session of its own. Descriptor 0 is a pipe from the supervisor: each line is a deadline, in seconds of
CLOCK_BOOTTIME, until which the supervisor's lease is certainly good. At end of file, or when the last deadline has
passed, no one may still be on the device, so everything below the guardian is killed. So it is when the command ends
by itself: daemons that it left behind must not hold the device either. The status descriptor receives one line,
`exit CODE` or `signal NUMBER` when the command ended by itself, `lease over` when the deadline has passed,
`memory BYTES` when it used that much and so more than it may.

MEMORY_BYTES is what the command and all its descendants may use together. What counts is memory in use, not address
space, of which CUDA and vLLM reserve far more than they use. ALLOCATED_BYTES is what each single process may allocate
(RLIMIT_DATA): a process that is refused memory can still report it, one that is killed cannot. 0 limits neither. Should
the machine run out of memory all the same, the command is what the kernel takes first.

The guardian is the subreaper of its descendants, so also those that made a session of their own (torchrun's ranks,
engine processes) are found. Should the guardian itself be killed, the command dies with it (PDEATHSIG), and the
supervisor, who sees its pipe close, kills whatever still carries the run's mark.
"""

import contextlib
import ctypes
import os
import resource
import select
import signal
import sys
import time

_SET_PDEATHSIG = 1
_SET_CHILD_SUBREAPER = 36
FIRST_DEADLINE_SECONDS = 30.0
# How soon memory is looked at again: the less is left, the sooner, since it may be filled at this rate.
_FILL_BYTES_PER_SECOND = 4 << 30
_LOOK_SECONDS = (0.05, 1.0)
# The supervisor decides when a stage ends; a Ctrl-C on the terminal reaches the supervisor.
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def now() -> float:
    """Runs on while the machine sleeps, as the lease does."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def start(status_descriptor: int, allocated: int) -> int:
    """Fork within this process group. Returns the child's process id and, in the child, which is ready to run the
    command, 0."""
    guardian = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        prctl(_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guardian:  # it died before the line above
            os._exit(1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.close(status_descriptor)
        for number in IGNORED:
            signal.signal(number, signal.SIG_DFL)
        be_taken_first()
        if allocated:
            resource.setrlimit(resource.RLIMIT_DATA, (allocated, allocated))
    except OSError as error:
        os.write(2, f"cannot start: {error}\n".encode())
        os._exit(127)
    return 0


def be_taken_first() -> None:
    """By the kernel, when memory runs out. Any process may raise its own; descendants inherit it."""
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
    """Process ids of everything below this process, nearest first."""
    parents: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    # The command name, in brackets, may itself hold spaces and brackets.
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
            parents.setdefault(parent, []).append(int(entry))
    found = list(parents.get(os.getpid(), []))
    for pid in found:
        found.extend(parents.get(pid, []))
    return found


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


def reap(child: "int | None") -> "int | None":
    """Collect every process that has ended. Returns the wait status of `child` if it was among them."""
    status = None
    while True:
        try:
            pid, ended = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == 0:
            return status
        if pid == child:
            status = ended


def watch(child: int, memory: int) -> "str | None":
    """Wait for the end of the command, of its memory or of the lease, and return which; None when the supervisor has
    gone."""
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    deadline = now() + FIRST_DEADLINE_SECONDS
    pending = b""
    look_at = now() if memory else deadline
    while True:
        if memory and now() >= look_at:
            used = used_memory()
            if used > memory:
                return f"memory {used}"
            shortest, longest = _LOOK_SECONDS
            look_at = now() + min(longest, max(shortest, (memory - used) / _FILL_BYTES_PER_SECOND))
        status = reap(child)
        if status is not None:
            signalled = os.WIFSIGNALED(status)
            return f"signal {os.WTERMSIG(status)}" if signalled else f"exit {os.WEXITSTATUS(status)}"
        left = deadline - now()
        if left <= 0:
            return "lease over"
        patience = min(left, max(0.0, look_at - now())) if memory else left
        ready = select.select([0, wake_read], [], [], patience)[0]
        if wake_read in ready:
            os.read(wake_read, 4096)
        if 0 in ready:
            data = os.read(0, 4096)
            if not data:
                return None
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                deadline = float(line)


def guard(status_descriptor: int, memory: int, allocated: int) -> None:
    """Become the guardian of a fork of this process, and end with it. Returns in the fork alone."""
    os.set_inheritable(status_descriptor, False)
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    prctl(_SET_CHILD_SUBREAPER, 1)
    child = start(status_descriptor, allocated)
    if not child:
        return
    ended = watch(child, memory)
    if ended is not None:
        os.write(status_descriptor, f"{ended}\n".encode())
    kill_everything()


def main(arguments: list[str]) -> None:
    command = arguments[3:]
    guard(int(arguments[0]), int(arguments[1]), int(arguments[2]))
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"cannot start {command[0]}: {error}\n".encode())
    os._exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
