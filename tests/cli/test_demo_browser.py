"""The demo shows its dashboard to someone who sits before a browser, and to no one else."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

OPEN = "import sys; from steerboard.cli.demo import open_browser; sys.exit(0 if open_browser('http://x/p/y') else 3)"


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
        [sys.executable, "-c", OPEN], env=environment, stdout=theirs if terminal else subprocess.DEVNULL, timeout=60
    )
    os.close(ours)
    os.close(theirs)
    assert done.returncode == (0 if opens else 3)
    assert (asked.read_text() if asked.exists() else None) == ("http://x/p/y" if opens else None)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_demo_ends_with_an_address_to_rank_at_unless_its_server_has_stopped(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STEERBOARD_")}
    environment |= {"STEERBOARD_HOME": str(tmp_path / "home")}
    command = [str(Path(sys.executable).with_name("steerboard")), "demo", "--port", "0"]
    done = subprocess.run([*command, "--exit"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for method in ("Decision Transformer", "DPO", "KTO", "SFT, best of 8"):
        assert method in done.stdout
    assert "/sign-in/" not in done.stdout
    assert "/rank/" not in done.stdout
    assert "steerboard evaluations rank demo-1.report" in done.stdout

    # The second one reuses every stage, and stays up.
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as staying:
        assert staying.stdout is not None
        printed = "".join(iter(staying.stdout.readline, "Steerboard stays up; stop it with Ctrl-C.\n"))
        (link,) = re.findall(r"Rank the answers blind, signed in once:  (\S+)", printed)
        with httpx.Client(base_url=link[: link.index("/sign-in/")]) as browser:
            page = browser.post(link).headers["location"]
            assert "<!doctype html>" in browser.get(page).text.lower()
            browser.headers["X-CSRF-Token"] = browser.get("/api/v1/session").json()["csrf_token"]
            rankings = "/api/v1/projects/default/rankings"
            campaign = page.removeprefix("/p/default/rank/")
            (task,) = browser.post(f"{rankings}/{campaign}/next", json={"ahead": 1}).json()["items"]
            assert len(task["answers"]) == 7
            body = {"ranks": [1, 2, 3, 4, 5, 6, 7], "seconds": 9, "submission": task["id"]}
            assert browser.post(f"{rankings}/tasks/{task['id']}/submit", json=body).json()["done"] == 1
        staying.send_signal(signal.SIGTERM)
    assert staying.returncode == 0
