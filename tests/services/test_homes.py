"""Homes with any name work; those that cannot be used are refused in one sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from test_services_up import Start, headers, start

from support.patience import PATIENCE, wait_until
from support.processes.small_disk import small_disk

__all__ = ["start"]

ODD = 'it\'s 50% #1? "home" & a+b, c;d=ü'
BLOB = b"weights"


def command(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STEERBOARD_")}
    return subprocess.run(
        [sys.executable, "-m", "steerboard.cli.main", *arguments],
        env=environment | {"STEERBOARD_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


@pytest.fixture
def near() -> Iterator[Path]:
    """A folder below which the sockets of a home have names that are short enough for it."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="sb-") as folder:
        yield Path(folder)


@pytest.mark.long
def test_everything_works_in_a_home_of_any_name(start: Start, tmp_path: Path, near: Path) -> None:
    home = near / ODD
    up = start(home)
    assert httpx.get(f"{up.url}/api/v1/system/health", timeout=PATIENCE).json()["status"] == "ok"
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"prompt": f"row {n}", "response": "yes"}) + "\n" for n in range(20)))
    imported = command(home, "datasets", "import", str(rows), "--name", "rows", "--kind", "instructions")
    assert imported.returncode == 0, imported.stderr
    with httpx.Client(base_url=f"{up.url}/api/v1/projects/default/", headers=headers(home)) as http:
        body = {
            "name": "mixed",
            "config": {"run": "mix", "parts": [{}], "size": 10},
            "inputs": {"parts.0": "rows"},
        }
        answer = http.post("runs", json=body)
        assert answer.status_code == 201, answer.text
        path = f"runs/{answer.json()['id']}"
        wait_until(lambda: http.get(path).json()["state"] in ("succeeded", "failed"), pause=0.2)
        run = http.get(path).json()
        assert run["state"] == "succeeded", run["reason"]
    backups = tmp_path / f"backups {ODD}"
    done = command(home, "backup", str(backups))
    assert done.returncode == 0, done.stderr
    other = near / f"other {ODD}"
    done = command(other, "restore", str(backups))
    assert done.returncode == 0, done.stderr
    again = start(other, "--no-worker")
    refused = httpx.get(f"{again.url}/api/v1/projects/default/datasets/rows", timeout=PATIENCE, headers=headers(other))
    assert refused.json()["rows"] == 20


@pytest.mark.long
@pytest.mark.parametrize("arguments", [("up", "--port", "0"), ("worker",), ("backup", "DEST"), ("doctor",)])
@pytest.mark.parametrize("below", ["below", ""])
def test_a_home_that_is_a_file_is_one_sentence(tmp_path: Path, arguments: tuple[str, ...], below: str) -> None:
    home = tmp_path / "home"
    home.write_text("no folder")
    given = [str(tmp_path / "dest") if argument == "DEST" else argument for argument in arguments]
    done = command(home / below, *given)
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    if arguments[0] in ("up", "worker"):
        assert "[unusable_home]" in done.stderr
        assert f"{home} is a file" in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("arguments", [("up", "--port", "0"), ("secrets", "rotate"), ("worker",), ("doctor",)])
def test_a_home_that_cannot_be_written_is_one_sentence(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    with small_disk(tmp_path / "disk", 8, "ro") as home:
        done = command(home, *arguments)
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    if arguments[0] in ("up", "worker"):
        assert "[unusable_home]" in done.stderr
    assert len(done.stderr.splitlines()) <= 3


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"url": 1}', b"\xff\xfe", b'{"url": "http://x"}'])
def test_a_damaged_client_file_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "client.json").write_bytes(content)
    done = command(tmp_path, "tokens", "list")
    assert done.returncode == 69, done
    assert "[bad_client_file]" in done.stderr
    assert "steerboard up" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_damaged_files_of_a_home_do_not_keep_it_from_starting_or_from_being_told_in_use(
    start: Start, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "up.lock").write_bytes(b"\xff{ damaged")
    (home / "client.json").write_bytes(b"\xff{ damaged")
    start(home, "--no-worker")
    assert headers(home)
    (home / "up.lock").write_bytes(b"\xff{ damaged")
    second = command(home, "up", "--port", "0")
    assert second.returncode == 1
    assert "[home_in_use]" in second.stderr
    assert "Traceback" not in second.stderr
