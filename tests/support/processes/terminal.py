"""A terminal of a chosen width, on which commands run as processes."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(columns: int, *arguments: str, typed: str = "", **environment: str) -> str:
    """What `steerboard ARGUMENTS` writes there, with its escape sequences. `typed` is what the person types."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    command = [sys.executable, "-m", "steerboard.cli.main", *arguments]
    env |= {"TERM": "xterm-256color", **environment}
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env)
    os.close(slave)
    os.write(master, typed.encode())
    written = bytearray()
    while chunk := _read(master):
        written += chunk
    os.close(master)
    process.wait()
    return written.decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError:  # how Linux reports that the last writer has closed it
        return b""
