"""A command is there at once: none but those that start or examine servers load what a server is made of."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("fastapi", "sqlalchemy", "celery", "sklearn", "torch")
LOADED = f"import sys, steerboard.cli.main; print(*{set(HEAVY)!r} & set(sys.modules))"


def test_the_command_line_loads_no_server_before_it_is_asked_to() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
