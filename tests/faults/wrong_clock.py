"""A clock that a test sets, for a process and all that it starts.

libfaketime does the same and more. It also hangs now and then: it locks inside of what may be called after a fork, and
keeps semaphores that outlive who is killed.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path

COMPILER = shutil.which("cc") if sys.platform == "linux" else None
HOUR = 3600


class WrongClock:
    """Right until it jumps."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "offset"
        self._file.write_bytes(bytes(8))
        library = folder / "wrong_clock.so"
        source = Path(__file__).with_suffix(".c")
        subprocess.run([str(COMPILER), "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
        self.environment = {"LD_PRELOAD": str(library), "WRONG_CLOCK": str(self._file)}

    def jump(self, seconds: int) -> None:
        """All its processes see it at once: they have the file mapped."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("q", seconds))
