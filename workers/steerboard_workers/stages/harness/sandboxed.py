"""Run as a program of its own, SECONDS its argument: limits itself for good, then runs the code that it reads.

Standard input: a line with a word, and the code. The word is written to standard output once the code has ended without
an exception. Exit code 77: the limits cannot be set here, and nothing was run. It imports nothing of ours.

Files: Landlock (Linux 5.13), which lets it read Python's own and nothing else, and write none. Everything else: a list
of the system calls that it may make (seccomp). It has no sockets, no processes or threads, no signals to others. Root
is bound in the same way.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
import sys

UNAVAILABLE = 77
MEMORY = 1 << 30

_LIBC = ctypes.CDLL(None, use_errno=True)
_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = 38, 22, 2
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_READ = 1 << 2 | 1 << 3  # files, and what is in a folder
# Rights over files that each version of Landlock knows.
_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_LATER = (1 << 16) - 1

# Numbers of system calls: what an interpreter needs that reads files, computes and ends.
_ARCHITECTURES = {
    "x86_64": (
        0xC000003E,
        "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 19 20 21 23 24 25 28 32 33 35 39 60 63 72 79 89 96 98 99 100 102 "
        "104 107 108 110 131 158 186 201 202 204 217 228 229 230 231 257 262 267 269 270 271 273 292 293 318 324 332 "
        "334 439",
    ),
    "aarch64": (
        0xC00000B7,
        "17 23 24 25 29 48 56 57 59 61 62 63 64 65 66 67 72 73 78 79 80 93 94 98 99 101 113 114 115 123 124 132 134 "
        "135 139 153 160 165 169 172 173 174 175 176 177 178 179 214 215 216 222 226 233 278 283 291 293 439",
    ),
}


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
    """A call that is not on the list fails with EPERM."""
    machine, numbers = _ARCHITECTURES[platform.machine()]
    allowed = [int(number) for number in numbers.split()]
    load, equal, back = 0x20, 0x15, 0x06
    program = [(load, 0, 0, 4), (equal, 1, 0, machine), (back, 0, 0, 0), (load, 0, 0, 0)]
    program += [(equal, len(allowed) - place, 0, number) for place, number in enumerate(allowed)]
    program += [(back, 0, 0, 0x00050001), (back, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    _check(_LIBC.prctl(_SET_SECCOMP, _FILTER, struct.pack("@HP", len(program), ctypes.addressof(code)), 0, 0))


def _check(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def main() -> None:
    word, _, code = sys.stdin.buffer.read().partition(b"\n")
    verdict = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    try:
        limit(int(sys.argv[1]))
    except (OSError, KeyError):
        os._exit(UNAVAILABLE)
    exec(compile(code, "<code>", "exec"), {"__name__": "__main__"})
    os.write(verdict, word)
    os._exit(0)


if __name__ == "__main__":
    main()
