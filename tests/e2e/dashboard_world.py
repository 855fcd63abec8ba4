"""A running Steerboard with its dashboard, for a real browser to use."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Page

from support import environments
from support.patience import PATIENCE, wait_until
from support.processes.surroundings import surroundings

# A name of this machine that the tests' browser knows.
NAMED = "steerboard.test"

# Every stage of the offline pipeline, as small as it can be while its report still means something to look at.
RECIPE = """
name: small
inputs:
  instructions: {type: dataset, kind: instructions}
  preferences: {type: dataset, kind: preferences}
stages:
  base: {run: base, source: "random:tiny-llama", vocabulary: 400, hidden: 32, layers: 1, heads: 2, max_length: 96}
  sft: {run: train, method: sft, model: base, data: $instructions, lr: 1.0e-3, batch: 8, max_steps: 150, epochs: 100}
  reward: {run: train, method: reward_model, model: sft, data: $preferences, lr: 1.0e-3, batch: 8, max_steps: 20}
  mixture:
    run: mix
    parts: [{data: $instructions, share: auto}, {data: $preferences, side: both, share: auto}]
    size: 120
  labelled: {run: score, data: mixture, reward: reward}
  mle: {run: train, method: mle_filter, model: sft, data: labelled, lr: 1.0e-3, batch: 8, max_steps: 20}
  dt: {run: train, method: decision_transformer, model: sft, data: labelled, lr: 1.0e-3, batch: 8, max_steps: 30}
  report:
    run: evaluate
    entrants: [sft, mle, {model: dt, scores: [-5.0, 0.0, 5.0]}]
    rewards: [reward]
    prompts: 6
    decoding: {temperature: 0.0, max_new_tokens: 12}
"""


@dataclass
class World:
    """`steerboard up` as a process of its own, with one worker and embedded servers."""

    home: Path
    # The stage parent of the tests, if their environment is this one's.
    stage_parent: Path | None = None
    process: subprocess.Popen[bytes] | None = None
    url: str = ""
    client: httpx.Client = field(default_factory=httpx.Client)

    def start(self) -> None:
        ready = self.home / "ready.json"
        environment = {name: value for name, value in surroundings().items() if not name.startswith("STEERBOARD_")}
        environment |= {
            "STEERBOARD_HOME": str(self.home),
            "STEERBOARD_ALLOWED_HOSTS": NAMED,
            # Other work on the machine may hold up a worker for a while.
            "STEERBOARD_LEASE_SECONDS": "60",
            "STEERBOARD_HEARTBEAT_SECONDS": "1",
            "STEERBOARD_SWEEP_SECONDS": "1.5",
            "STEERBOARD_POLL_SECONDS": "1.5",
            "STEERBOARD_RETRY_SECONDS": "0.1",
            "STEERBOARD_STAGE_THREADS": "1",
            "STEERBOARD_REWARD_ROOTS": str(Path(environments.__file__).parent),
            # Some of 40 prompts under a random salt are held out and most are not.
            "STEERBOARD_HELD_OUT_FRACTION": "0.3",
        }
        if self.stage_parent is not None:
            environment["STEERBOARD_STAGE_PARENT"] = str(self.stage_parent)
        command = [str(Path(sys.executable).with_name("steerboard")), "up", "--port", "0", "--ready-file", str(ready)]
        with (self.home / "up.log").open("wb") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        self.wait(ready.is_file, "steerboard up")
        self.url = json.loads(ready.read_text())["url"]
        token = json.loads((self.home / "client.json").read_text())["token"]
        self.client = httpx.Client(
            base_url=f"{self.url}/api/v1/projects/default/",
            headers={"Authorization": f"Bearer {token}"},
            timeout=PATIENCE,
        )

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=PATIENCE)

    def steerboard(self, *arguments: str, seconds: float = 600) -> str:
        """What a command of the command line prints; it must succeed."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("STEERBOARD_")}
        command = [str(Path(sys.executable).with_name("steerboard")), *arguments]
        environment = {**clean, "STEERBOARD_HOME": str(self.home)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def by_name(self, address: str) -> str:
        """An address of this server under `NAMED`."""
        return address.replace("127.0.0.1", NAMED)

    def sign_in_link(self) -> str:
        answer = self.client.post(f"{self.url}/api/v1/sign-in-links")
        answer.raise_for_status()
        return self.url + str(answer.json()["path"])

    def invite(self, user: str, role: str) -> str:
        """A link that signs a new member in."""
        answer = self.client.post("members", json={"user": user, "role": role})
        answer.raise_for_status()
        return self.url + str(answer.json()["sign_in"]["path"])

    def get(self, path: str) -> Any:
        answer = self.client.get(path)
        answer.raise_for_status()
        return answer.json()

    def import_rows(self, name: str, kind: str, rows: list[dict[str, Any]]) -> None:
        body = "".join(json.dumps(row) + "\n" for row in rows).encode()
        files = {"file": (f"{name}.jsonl", body)}
        self.client.post("datasets/import", data={"name": name, "kind": kind}, files=files).raise_for_status()

    def worker_pid(self) -> int:
        workers = self.get(f"{self.url}/api/v1/system/workers")
        return int(next(w["pid"] for w in workers if w["alive"] and w["pool"] == "default"))

    def wait(self, condition: Callable[[], object], what: str, seconds: float = 600) -> None:
        wait_until(condition, f"{what} did not come in {seconds} s", seconds=seconds, pause=0.1)


def follow(page: Page, link: str) -> None:
    """Sign in by a link, as a person does."""
    page.goto(link)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(lambda url: "/sign-in/" not in url)


def instructions() -> list[dict[str, Any]]:
    return [
        {"prompt": f"Name a thing that is {color} {number}.", "response": f"A {color} {thing}, of course."}
        for number in range(8)
        for color, thing in (
            ("red", "apple"),
            ("green", "leaf"),
            ("blue", "lake"),
            ("yellow", "lemon"),
            ("grey", "stone"),
        )
    ]


def preferences() -> list[dict[str, Any]]:
    return [
        {"prompt": row["prompt"], "chosen": row["response"] + " Glad to help!", "rejected": "No."}
        for row in instructions()
    ]
