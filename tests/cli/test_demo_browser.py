"""The demo shows its dashboard to someone who sits before a browser, and to no one else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from support.patience import PATIENCE

OPEN = (
    "import sys; from steerboard.cli.demo.showing import open_browser; "
    "sys.exit(0 if open_browser('http://x/p/y') else 3)"
)


@pytest.mark.parametrize(
    ("display", "terminal", "opens"), [(True, True, True), (False, True, False), (True, False, False)]
)
def test_a_browser_is_opened_only_where_one_is_seen(tmp_path: Path, display: bool, terminal: bool, opens: bool) -> None:
    asked = tmp_path / "asked"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {asked}\n')
    browser.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    environment |= {"BROWSER": f"{browser} %s"} | ({"DISPLAY": ":9"} if display else {})
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", OPEN],
        env=environment,
        stdout=theirs if terminal else subprocess.DEVNULL,
        timeout=PATIENCE,
    )
    os.close(ours)
    os.close(theirs)
    assert done.returncode == (0 if opens else 3)
    assert (asked.read_text() if asked.exists() else None) == ("http://x/p/y" if opens else None)
