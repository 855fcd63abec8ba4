"""`steerboard up` with a worker, as a process of its own, for those who use it by its command line and curl."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.patience import PATIENCE, wait_until


@contextmanager
def running_up(home: Path) -> Iterator[dict[str, str]]:
    """Yields the environment of its command line, with STEERBOARD_URL. It may read models below the parent of `home`,
    `hub` there is the cache of the hub, which is not reached, and `python` and `steerboard` are those of this process.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("STEERBOARD_")}
    environment |= {
        "STEERBOARD_HOME": str(home),
        "STEERBOARD_SWEEP_SECONDS": "0.5",
        "STEERBOARD_POLL_SECONDS": "0.5",
        "STEERBOARD_STAGE_THREADS": "1",
        # Some of 20 prompts under a random salt are held out and some are not.
        "STEERBOARD_HELD_OUT_FRACTION": "0.5",
        "STEERBOARD_HEARTBEAT_SECONDS": "0.5",
        "STEERBOARD_RETRY_SECONDS": "0.1",
        "STEERBOARD_ALLOWED_PRIVATE": "127.0.0.1",
        "HF_HUB_CACHE": str(home.parent / "hub"),
        "HF_HUB_OFFLINE": "1",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    ready = home / "ready.json"
    command = ["steerboard", "up", "--port", "0", "--ready-file", str(ready)]
    with (home / "up.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=home.parent)
    try:
        wait_until(ready.is_file, (home / "up.log").read_text, pause=0.1, process=process)
        yield environment | {"STEERBOARD_URL": json.loads(ready.read_text())["url"]}
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)


def client_token(environment: dict[str, str]) -> str:
    """The token that the command line keeps in its home."""
    return str(json.loads((Path(environment["STEERBOARD_HOME"]) / "client.json").read_text())["token"])
