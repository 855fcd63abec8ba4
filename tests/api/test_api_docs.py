"""The commands of docs/api.md, run as one script against a real server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI

from support.patience import PATIENCE
from support.servers.served_app import served

DOCS = Path(__file__).parents[2] / "docs" / "api.md"

pytestmark = pytest.mark.skipif(not (shutil.which("curl") and shutil.which("bash")), reason="needs curl and bash")


@pytest.fixture
def url(app: FastAPI) -> Iterator[str]:
    with served(app) as address:
        yield address


@pytest.fixture
def finished(url: str, token: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """All blocks in order. No worker runs, so they look at the state once and wait no longer. Their files are in
    `tmp_path`."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", DOCS.read_text(), re.MULTILINE | re.DOTALL)
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "STEERBOARD_URL": url,
        "STEERBOARD_TOKEN": token,
        "WAIT_SECONDS": "0",
        "FOLLOW_SECONDS": "1",
    }
    environment.pop("CI_JOB_ID", None)
    script = "\n".join(["set -euo pipefail", *blocks, 'echo "outcome $OUTCOME"'])
    return subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def ids(events: str) -> list[int]:
    return [int(number) for number in re.findall(r"^id: (\d+)$", events, re.MULTILINE)]


def test_the_commands_of_the_api_page_do_what_it_says(
    finished: subprocess.CompletedProcess[str], tmp_path: Path
) -> None:
    assert finished.returncode == 0, finished.stdout + finished.stderr
    printed = finished.stdout.splitlines()
    assert "20 rows {} 0 bad" in printed
    assert "started offline-rlhf-1" in printed
    assert "offline-rlhf-1 is queued" in printed
    assert "status 422" in printed
    assert any(line.startswith("broken_json line 1 ") for line in printed)
    # Cancelled as a whole; then its first run is resumed, and all of it cancelled again.
    assert printed[-4:] == ["cancelled", "queued", "cancelled", "outcome 2"]
    seen, later = (tmp_path / "events.txt").read_text(), (tmp_path / "cancelled.txt").read_text()
    assert ids(seen) == list(range(1, len(ids(seen)) + 1))
    assert ids(later)[0] == ids(seen)[-1] + 1
    assert '"state":"cancelled"' in later
    assert '"state":"cancelled"' not in seen
    runs = (tmp_path / "runs.txt").read_text().splitlines()
    assert len(runs) > 5
    assert len(set(runs)) == len(runs)
