"""What `walk` asks of the API, from inside its container: to start a pipeline, and to wait until it trains or ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx

URL = "http://127.0.0.1:8700"
PROJECT = "/api/v1/projects/default"
PAIRS, WORDS = 120, ("tea", "rain", "music", "bread", "snow", "books")
LIMIT_SECONDS = 1800
KEPT = Path("/tmp/steerboard-walk-token")


def signed_in() -> httpx.Client:
    """A client signed in as the owner, with a token that a former call kept, or by a sign-in link."""
    if KEPT.exists():
        return httpx.Client(base_url=URL, headers={"Authorization": f"Bearer {KEPT.read_text()}"}, timeout=60)
    done = subprocess.run(["steerboard", "sign-in-link"], capture_output=True, text=True, check=True)
    code = done.stdout.strip().rpartition("/sign-in/")[2]
    client = httpx.Client(base_url=URL, timeout=60)
    client.headers["Cookie"] = client.post(f"/sign-in/{code}").headers["set-cookie"].partition(";")[0]
    client.headers["X-CSRF-Token"] = client.get("/api/v1/session").raise_for_status().json()["csrf_token"]
    made = client.post(f"{PROJECT}/tokens", json={"name": "walk", "scopes": ["read", "write", "run"]})
    KEPT.write_text(made.raise_for_status().json()["token"])
    return signed_in()


def start(client: httpx.Client) -> str:
    """The name of the pipeline, once the dashboard has been served and its data are imported."""
    assert "<title>" in client.get("/").raise_for_status().text
    rows = [
        {
            "prompt": f"What do you think of {WORDS[n % len(WORDS)]} on day {n}?",
            "chosen": f"I like {WORDS[n % len(WORDS)]} very much.",
            "rejected": "No.",
        }
        for n in range(PAIRS)
    ]
    file = Path("/tmp/walk.jsonl")
    file.write_text("\n".join(map(json.dumps, rows)))
    command(client, "datasets", "import", str(file), "--kind", "preferences", "--name", "walk")
    return str(command(client, "run", "offline-rlhf", "--set=preferences=walk", "--set=base=random:tiny-llama")["name"])


def command(client: httpx.Client, *arguments: str) -> dict[str, Any]:
    """What a command of ours answers in JSON."""
    token = client.headers["Authorization"].removeprefix("Bearer ")
    environment = {**os.environ, "STEERBOARD_URL": URL, "STEERBOARD_TOKEN": token}
    done = subprocess.run(["steerboard", *arguments, "--json"], env=environment, stdout=subprocess.PIPE, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def wait(client: httpx.Client, name: str, state: str) -> None:
    """Waits until the pipeline succeeded, or, for `running`, until one of its runs trains. Prints its runs."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline:
        runs: list[dict[str, Any]] = client.get(f"{PROJECT}/pipelines/{name}").raise_for_status().json()["runs"]
        states = {run["state"] for run in runs}
        if state == "running" and any(run["state"] == "running" and run["kind"] == "train" for run in runs):
            return
        if state == "succeeded" and states <= {"succeeded", "failed", "cancelled", "skipped"}:
            for run in runs:
                print(f"{run['name']}: {run['state']} at attempt {run['attempt']}")
            sys.exit(0 if states == {"succeeded"} else 1)
        time.sleep(0.5)
    sys.exit(f"after {LIMIT_SECONDS} s the pipeline was not {state}")


if __name__ == "__main__":
    with signed_in() as client:
        if sys.argv[1] == "start":
            print(start(client))
        else:
            wait(client, *sys.argv[2:])
