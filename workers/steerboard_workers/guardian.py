"""The guardian: the parent of a stage process, and the end of it.

Standard library only, started by path, so that it is up in milliseconds and needs nothing of what it guards.

    python -I -S guardian.py STATUS_DESCRIPTOR MEMORY_BYTES COMMAND...

It must lead a session of its own. Descriptor 0 is a pipe from the supervisor: each line is a deadline, in seconds of
CLOCK_BOOTTIME, until which the supervisor's lease is certainly good. At end of file, or when the last deadline has
passed, nobody may still be on the device, so everything below the guardian is killed. So it is when the command ends
by itself: daemons that it left behind must not hold the device either. The status descriptor receives one line,
`exit CODE` or `signal NUMBER` when the command ended by itself, `lease over` when the deadline has passed.
MEMORY_BYTES limits the address space; 0 does not.

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
_FIRST_DEADLINE_SECONDS = 30.0
# The supervisor decides when a stage ends; a Ctrl-C on the terminal reaches the supervisor.
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def now() -> float:
    """Runs on while the machine sleeps, as the lease does."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def start(command: list[str], status_descriptor: int, memory: int) -> int:
    """Fork and exec the command in this process group. Returns its process id."""
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
        os.close(status_descriptor)
        for number in IGNORED:
            signal.signal(number, signal.SIG_DFL)
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"cannot start {command[0]}: {error}\n".encode())
    os._exit(127)


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


def watch(child: int) -> "str | None":
    """Wait for the end of the command or of the lease, and tell which; None when the supervisor has gone."""
    wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wake_write)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    deadline = now() + _FIRST_DEADLINE_SECONDS
    pending = b""
    while True:
        status = reap(child)
        if status is not None:
            signalled = os.WIFSIGNALED(status)
            return f"signal {os.WTERMSIG(status)}" if signalled else f"exit {os.WEXITSTATUS(status)}"
        left = deadline - now()
        if left <= 0:
            return "lease over"
        ready = select.select([0, wake_read], [], [], left)[0]
        if wake_read in ready:
            os.read(wake_read, 4096)
        if 0 in ready:
            data = os.read(0, 4096)
            if not data:
                return None
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                deadline = float(line)


def main(arguments: list[str]) -> None:
    status_descriptor, memory, command = int(arguments[0]), int(arguments[1]), arguments[2:]
    os.set_inheritable(status_descriptor, False)
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    prctl(_SET_CHILD_SUBREAPER, 1)
    ended = watch(start(command, status_descriptor, memory))
    if ended is not None:
        os.write(status_descriptor, f"{ended}\n".encode())
    kill_everything()


if __name__ == "__main__":
    main(sys.argv[1:])
