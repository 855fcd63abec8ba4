"""`steerboard worker`: its options reach the worker's process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.patience import PATIENCE


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--node", "1"], "node 1 of 1"),
        pytest.param(
            ["--nodes", "2", "--node", "1", "--rendezvous", "a:1"],
            "no `steerboard up` runs on this home",
            marks=pytest.mark.long,
        ),
        (["--nods", "2"], "No such option"),
    ],
    ids=["no_such_node", "well_meant", "misspelt"],
)
def test_nodes_are_told_and_checked_before_anything_starts(tmp_path: Path, options: list[str], said: str) -> None:
    known = {name: value for name, value in os.environ.items() if not name.startswith("STEERBOARD_")}
    done = subprocess.run(
        [sys.executable, "-m", "steerboard.cli.main", "worker", *options],
        env=known | {"STEERBOARD_HOME": str(tmp_path), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 2
    assert said in done.stderr
