"""Makes a small home with a bit of everything in it and a backup of it, for later releases to upgrade.

Run it with the release that is to be remembered, in an empty folder, and commit what it packs:
    .venv/bin/python tests/former_release/make_home.py FOLDER      # FOLDER/home-REVISION.tar.xz

The database is in the backup, table by table as that release wrote it; the home's files are next to it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import httpx

COMMAND = [sys.executable, "-m", "steerboard.cli.main"]
RECIPE = """
name: small
inputs:
  instructions: {type: dataset, kind: instructions}
  preferences: {type: dataset, kind: preferences}
stages:
  base: {run: base, source: "random:tiny-llama", vocabulary: 320, hidden: 32, layers: 1, heads: 2, max_length: 96,
         data: [$instructions, $preferences]}
  sft: {run: train, method: sft, model: base, data: $instructions, lr: 1.0e-3, batch: 8, max_steps: 4, template: plain}
  reward: {run: train, method: reward_model, model: sft, data: $preferences, lr: 1.0e-3, batch: 8, max_steps: 4}
  answers: {run: generate, model: sft, data: $preferences, limit: 12, decoding: {temperature: 1.0, max_new_tokens: 8}}
  labelled: {run: score, data: answers, reward: reward}
  dt: {run: train, method: decision_transformer, model: sft, data: labelled, lr: 1.0e-3, batch: 8, max_steps: 4}
  report:
    run: evaluate
    entrants: [sft, {model: dt, scores: [-5.0, 5.0]}]
    rewards: [reward]
    data: $preferences
    prompts: 4
    bootstrap: 100
    decoding: {max_new_tokens: 8}
"""
# What of a home is not the user's: servers' files, logs, locks and sockets.
_LEFT_OUT = ("postgres", "valkey", "redis", "logs", "run", "up.lock", "sockets", "work", "cache")


def main(folder: Path) -> None:
    home = folder / "home"
    environment = {**os.environ, "STEERBOARD_HOME": str(home)}
    ready = folder / "ready.json"
    up = subprocess.Popen(
        [*COMMAND, "up", "--home", str(home), "--port", "0", "--ready-file", str(ready)], env=environment
    )
    try:
        while not ready.exists():
            assert up.poll() is None
            time.sleep(0.5)
        fill(json.loads(ready.read_text())["url"], home, folder, environment)
        subprocess.run([*COMMAND, "backup", str(folder / "backup")], env=environment, check=True)
    finally:
        up.terminate()
        up.wait(60)
    revision = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], text=True).strip()
    pack(folder, folder / f"home-{revision}.tar.xz")


def fill(url: str, home: Path, folder: Path, environment: dict[str, str]) -> None:
    token = json.loads((home / "client.json").read_text())["token"]
    client = httpx.Client(
        base_url=f"{url}/api/v1/projects/default/", headers={"Authorization": f"Bearer {token}"}, timeout=60
    )

    def post(path: str, **how: Any) -> Any:
        answer = client.post(path, **how)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def dataset(name: str, kind: str, rows: list[dict[str, Any]]) -> None:
        body = "".join(json.dumps(row) + "\n" for row in rows)
        post("datasets/import", data={"name": name, "kind": kind}, files={"file": (f"{name}.jsonl", body.encode())})

    numbers = range(40)
    dataset(
        "dialogues", "instructions", [{"prompt": f"what is {n}?", "response": f"it is {n}, plainly"} for n in numbers]
    )
    pairs = [
        {"prompt": f"name {n}", "chosen": f"it is {n}, thanks", "rejected": f"no {n}", "topic": n % 3} for n in numbers
    ]
    dataset("pairs", "preferences", pairs)
    recipe = folder / "small.yaml"
    recipe.write_text(RECIPE)
    given = ["--set", "instructions=dialogues", "--set", "preferences=pairs"]
    subprocess.run([*COMMAND, "run", str(recipe), *given, "--wait"], env=environment, check=True)

    questions = "".join(json.dumps({"question_id": n, "turns": [f"what is {n}?"]}) + "\n" for n in range(4))
    post("prompt-sets", files={"file": ("questions.jsonl", questions.encode())}, data={"name": "sums"})
    entrants = [{"model": "small-1.sft", "name": "sft"}, {"model": "small-1.dt", "score": 5.0, "name": "dt"}]
    create = {"name": "people", "prompts": {"set": "sums"}, "entrants": entrants, "rewards": ["small-1.reward"]}
    post("evaluations", json=create)
    while client.get("evaluations/people").json()["state"] != "answered":
        time.sleep(1)
    campaign = post("evaluations/people/campaigns", json={"name": "first", "overlap": 1})
    link = post(f"evaluations/people/campaigns/{campaign['id']}/annotators", json={"name": "ann"})
    annotator = httpx.Client(base_url=url, timeout=60)
    assert annotator.get(link["link"]).status_code in (200, 303)
    annotator.headers["X-CSRF-Token"] = annotator.get("/api/v1/session").json()["csrf_token"]
    for number in range(3):
        rankings = "/api/v1/projects/default/rankings"
        task = annotator.post(f"{rankings}/{campaign['id']}/next", json={"ahead": 1}).json()["items"][0]
        said = {"ranks": [1, 2], "seconds": 4.0, "submission": f"submission-{number}"}
        assert annotator.post(f"{rankings}/tasks/{task['id']}/submit", json=said).is_success
    post(
        "endpoints",
        json={"name": "elsewhere", "base_url": "https://example.com/v1", "model": "m", "api_key": "sk-former-1234"},
    )
    post("members", json={"user": "vera", "role": "viewer"})
    post("collections", json={"name": "kept", "kind": "preferences"})


def pack(folder: Path, packed: Path) -> None:
    for name in _LEFT_OUT:
        shutil.rmtree(folder / "home" / name, ignore_errors=True)
        (folder / "home" / name).unlink(missing_ok=True)
    with tarfile.open(packed, "w:xz") as archive:
        archive.add(folder / "home", "home")
        archive.add(folder / "backup", "backup")
    print(f"{packed}: {packed.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
