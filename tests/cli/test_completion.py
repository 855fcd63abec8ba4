"""`--install-completion` in a bash of a terminal, as a person has it: Tab completes commands and options."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.patience import PATIENCE

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("STEERBOARD_")}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return kept | {"HOME": str(tmp_path), "PATH": path, "TERM": "dumb"}


@pytest.fixture
def typed(environment: dict[str, str], tmp_path: Path) -> Iterator[int]:
    """The terminal of a new bash, after the installation in one before it."""
    installed = subprocess.run(
        ["bash", "-c", "steerboard --install-completion; true"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert "bash completion installed in " in installed.stdout, installed.stderr
    master, slave = pty.openpty()
    command = ["bash", "--rcfile", str(tmp_path / ".bashrc"), "-i"]
    shell = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env=environment, cwd=tmp_path, start_new_session=True
    )
    os.close(slave)
    yield master
    shell.kill()
    shell.wait()
    os.close(master)


@pytest.mark.parametrize(
    ("begun", "completed"),
    [
        ("steerboard datasets imp", "import"),
        ("steerboard eval", "evaluations"),
        ("steerboard runs pause --wa", "--wait"),
    ],
)
def test_tab_completes_what_is_begun(typed: int, begun: str, completed: str) -> None:
    os.write(typed, f"{begun}\t".encode())
    written = ""
    while not re.search(rf"{re.escape(begun.rpartition(' ')[0])} {completed} ", written):
        assert select.select([typed], [], [], PATIENCE)[0], written
        written += os.read(typed, 1 << 16).decode()
