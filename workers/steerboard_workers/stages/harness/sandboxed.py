"""Run as a program of its own, SECONDS its argument: limits itself for good, then runs the code that it reads.

Standard input: a line with a word, and the code. The word is written to standard output once the code has ended without
an exception. Exit code 77: the limits cannot be set here, and nothing was run. It imports nothing of ours.

Files: Landlock (Linux 5.13), which lets it read Python's own and nothing else, and write none. Everything else: a list
of the system calls that it may make, of two of them depending on their arguments (seccomp). It has no sockets, no
processes or threads, no signals to others. Root is bound in the same way.

The word shows that the code ran to its end, not that it is right. Code that ends the process early does not write it,
and finds it in no variable, no frame, and no object that the garbage collector knows: while the code runs, it is on the
evaluation stack of `main` alone. It is in this process still, because a test has to run where the code is that it
tests. Code that reads the process's memory (by `ctypes`, or by bytecode made by hand) can find it; and code that robs
its tests of their meaning (an `__eq__` that is always true, a trace function that jumps over the assertions) needs no
word. Neither opens the limits, which are the kernel's.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
import sys
from collections.abc import Sequence

UNAVAILABLE = 77
MEMORY = 1 << 30

_LIBC = ctypes.CDLL(None, use_errno=True)
_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = 38, 22, 2
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_READ = 1 << 2 | 1 << 3  # files, and what is in a folder
# Rights over files that each version of Landlock knows.
_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_LATER = (1 << 16) - 1
# From this version on it also keeps signals from processes outside, however they are sent.
_SCOPES, _SIGNALS = 6, 1 << 1

# Allowed second arguments of the calls that could also have signals sent to others (F_SETOWN, F_SETSIG, O_ASYNC,
# FIOASYNC): to copy a descriptor, its flags, and what a terminal is.
_FCNTL = (0, 1, 2, 3, 1030)  # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC
_IOCTL = (0x5401, 0x5413, 0x541B, 0x5450, 0x5451)  # TCGETS, TIOCGWINSZ, FIONREAD, FIONCLEX, FIOCLEX

# Numbers of system calls: fcntl and ioctl, and what else an interpreter needs that reads files, computes and ends.
_ARCHITECTURES = {
    "x86_64": (
        0xC000003E,
        (72, 16),
        "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 17 19 20 21 23 24 25 28 32 33 35 39 60 63 79 89 96 98 99 100 102 104 "
        "107 108 110 131 158 186 201 202 204 217 228 229 230 231 257 262 267 269 270 271 273 292 318 324 332 334 439",
    ),
    "aarch64": (
        0xC00000B7,
        (25, 29),
        "17 23 24 48 56 57 61 62 63 64 65 66 67 72 73 78 79 80 93 94 98 99 101 113 114 115 123 124 132 134 135 139 "
        "153 160 165 169 172 173 174 175 176 177 178 179 214 215 216 222 226 233 278 283 291 293 439",
    ),
}

Step = tuple[int, int, int, int]
"""A step of a seccomp program: what it does, how many steps it jumps where that holds and where not, and its number."""
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06


def limit(seconds: int) -> None:
    """`seconds` of a processor. Raises OSError, KeyError for a machine that lacks what it needs."""
    for kind, most in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 64),
    ):
        resource.setrlimit(kind, (most, most))
    _check(_LIBC.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
    _limit_files()
    _limit_calls()


def _limit_files() -> None:
    version = _check(_LIBC.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), 1))
    handled = struct.pack("=Q", _RIGHTS.get(version, _LATER))
    if version >= _SCOPES:
        handled += struct.pack("=QQ", 0, _SIGNALS)
    rules = _check(_LIBC.syscall(_CREATE_RULESET, handled, ctypes.c_size_t(len(handled)), 0))
    for path in {os.path.dirname(os.__file__), "/lib", "/lib64", "/usr/lib", "/usr/share/zoneinfo"}:
        try:
            folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        _check(_LIBC.syscall(_ADD_RULE, rules, 1, struct.pack("=Qi", _READ, folder), 0))
        os.close(folder)
    _check(_LIBC.syscall(_RESTRICT_SELF, rules, 0))
    os.close(rules)


def _limit_calls() -> None:
    """A call that is not on the list, or is asked for something else, fails with EPERM."""
    machine, (fcntl, ioctl), numbers = _ARCHITECTURES[platform.machine()]
    program = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, machine), (_RETURN, 0, 0, 0), (_LOAD, 0, 0, 0)]
    program += [*_asked_for(fcntl, _FCNTL), *_asked_for(ioctl, _IOCTL)]
    program += _one_of([int(number) for number in numbers.split()])
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    _check(_LIBC.prctl(_SET_SECCOMP, _FILTER, struct.pack("@HP", len(program), ctypes.addressof(code)), 0, 0))


def _asked_for(call: int, allowed: Sequence[int]) -> list[Step]:
    """The steps that decide this call alone: by the lower half of its second argument, of which the kernel reads no
    more."""
    decided = [(_LOAD, 0, 0, 24), *_one_of(allowed)]
    return [(_EQUAL, 0, len(decided), call), *decided]


def _one_of(allowed: Sequence[int]) -> list[Step]:
    steps = [(_EQUAL, len(allowed) - place, 0, number) for place, number in enumerate(allowed)]
    return [*steps, (_RETURN, 0, 0, 0x00050001), (_RETURN, 0, 0, 0x7FFF0000)]


def _check(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def main() -> None:
    verdict, given = os.dup(1), os.dup(0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    # The word is an argument that is computed before the others, and so it is in no variable while the code runs.
    _end(verdict, _read_word(given), _run(given, int(sys.argv[1])))  # type: ignore[func-returns-value]


def _read_word(given: int) -> bytes:
    """Byte by byte: the code comes behind it."""
    word = b""
    while not word.endswith(b"\n"):
        word += os.read(given, 1) or b"\n"
    return word[:-1]


def _run(given: int, seconds: int) -> None:
    code = b""
    while part := os.read(given, 1 << 16):
        code += part
    os.close(given)
    try:
        limit(seconds)
    except (OSError, KeyError):
        os._exit(UNAVAILABLE)
    exec(compile(code, "<code>", "exec"), {"__name__": "__main__"})


def _end(verdict: int, word: bytes, _done: None) -> None:
    os.write(verdict, word)
    os._exit(0)


if __name__ == "__main__":
    main()
