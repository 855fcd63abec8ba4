from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest

from support.patience import PATIENCE, wait_until


@dataclass
class Up:
    home: Path
    process: subprocess.Popen[str]
    url: str
    sign_in: str

    def tree(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)


Start = Callable[..., Up]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """`steerboard up` with embedded servers in a home of its own, as a user starts it."""
    with starting(tmp_path) as begin:
        yield begin


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One without a worker, which tests leave as it is."""
    folder = tmp_path_factory.mktemp("up")
    with starting(folder) as begin:
        yield begin(folder / "home", "--no-worker")


@contextlib.contextmanager
def starting(tmp_path: Path) -> Iterator[Start]:
    running: list[subprocess.Popen[str]] = []
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STEERBOARD_")}
    environment["STEERBOARD_WARM_START"] = "0"  # no stage is run

    def begin(home: Path, *options: str, **variables: str) -> Up:
        ready = tmp_path / f"ready-{len(running)}.json"
        command = [sys.executable, "-m", "steerboard.cli.main", "up", "--home", str(home), "--port", "0"]
        process = subprocess.Popen(
            [*command, "--ready-file", str(ready), *options],
            env=environment | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        running.append(process)

        def said() -> str:
            process.kill()
            return "".join(process.communicate())

        wait_until(ready.exists, said, process=process)
        document = json.loads(ready.read_text())
        return Up(home, process, document["url"], document["sign_in"])

    try:
        yield begin
    finally:
        for process in running:
            process.kill()
            process.communicate()


def gone(processes: list[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Which of them still run after that time. A zombie does not run."""
    deadline = time.monotonic() + seconds
    left = processes
    while left and time.monotonic() < deadline:
        alive = []
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                    alive.append(process)
        left = alive
        time.sleep(0.05)
    return left


def headers(home: Path) -> dict[str, str]:
    return {"Authorization": f"Bearer {json.loads((home / 'client.json').read_text())['token']}"}


@pytest.mark.long
def test_nothing_outlives_up_when_it_is_killed_and_no_data_is_lost_and_a_signal_ends_it_in_order(
    start: Start, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    first = start(home)
    made = httpx.post(f"{first.url}/api/v1/projects", timeout=PATIENCE, json={"name": "kept"}, headers=headers(home))
    assert made.status_code == 201
    tree = first.tree()
    names = " ".join(" ".join(process.cmdline()) for process in tree)
    for part in ("valkey-server", "postgres", "steerboard_workers.worker"):
        assert part in names
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    assert gone(tree, 8.0) == []
    second = start(home)
    names_now = httpx.get(f"{second.url}/api/v1/projects", timeout=PATIENCE, headers=headers(home)).json()["items"]
    assert {project["name"] for project in names_now} == {"default", "kept"}
    tree = second.tree()
    second.process.send_signal(signal.SIGTERM)
    out, err = second.process.communicate(timeout=PATIENCE)
    assert second.process.returncode == 0, err
    assert "Stopping" in out
    assert gone(tree, 1.0) == []
    log = (home / "logs" / "postgres.log").read_text()
    assert "database system is shut down" in log


@pytest.mark.long
def test_a_guardian_that_is_killed_takes_its_server_along(start: Start, tmp_path: Path) -> None:
    up = start(tmp_path / "home", "--no-worker")
    [guardian] = [p for p in up.tree() if "guardian.py" in " ".join(p.cmdline()) and "valkey" in " ".join(p.cmdline())]
    [server] = guardian.children()
    guardian.kill()
    assert gone([server], 5.0) == []
    wait_until(
        lambda: httpx.get(f"{up.url}/api/v1/system/health", timeout=PATIENCE).json()["status"] == "ok",
        "Valkey was not started again",
        pause=0.1,
    )


@pytest.mark.long
def test_a_second_up_on_the_same_home_says_so_and_disturbs_nothing(up: Up, start: Start) -> None:
    with pytest.raises(AssertionError, match="home_in_use") as refused:
        start(up.home, "--no-worker")
    assert up.url in str(refused.value)
    assert httpx.get(f"{up.url}/api/v1/system/health", timeout=PATIENCE).json()["status"] == "ok"


def test_the_cli_finds_a_running_server_and_its_secrets_are_private(up: Up) -> None:
    assert stat.S_IMODE((up.home / "client.json").stat().st_mode) == 0o600
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STEERBOARD_")}
    environment["STEERBOARD_HOME"] = str(up.home)
    cli = [sys.executable, "-m", "steerboard.cli.main"]

    def run(*arguments: str) -> str:
        return subprocess.run([*cli, *arguments], env=environment, capture_output=True, text=True, check=True).stdout

    secret = run("tokens", "create", "ci", "--scope", "read").strip()
    answer = httpx.get(
        f"{up.url}/api/v1/projects/default", timeout=PATIENCE, headers={"Authorization": f"Bearer {secret}"}
    )
    assert answer.status_code == 200
    link = run("sign-in").strip()
    with httpx.Client() as browser:
        for address in (link, up.sign_in):
            assert browser.post(address).status_code == 303
    assert httpx.get(up.sign_in, timeout=PATIENCE).json()["code"] == "link_used"


@pytest.mark.long
def test_a_port_in_use_is_refused_before_anything_starts(up: Up, start: Start, tmp_path: Path) -> None:
    port = up.url.rsplit(":", 1)[1]
    with pytest.raises(AssertionError, match="port_in_use"):
        start(tmp_path / "other", "--no-worker", "--port", port)
    assert not (tmp_path / "other" / "postgres").exists()


def test_without_a_server_the_cli_says_how_to_start_one(tmp_path: Path) -> None:
    environment = {**os.environ, "STEERBOARD_HOME": str(tmp_path)}
    for name in ("STEERBOARD_URL", "STEERBOARD_TOKEN"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-m", "steerboard.cli.main", "tokens", "list"], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 69
    assert "steerboard up" in done.stderr
    assert "Traceback" not in done.stderr
