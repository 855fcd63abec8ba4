"""The commands of docs/take-your-model.md, run as one script against a server with a worker and a hub."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from page_shell import blocks, shell
from pushed_things import PushWorld

from support.servers.push_hub import WRITES, PushHub


@pytest.fixture
def worker(world: PushWorld) -> Iterator[None]:
    """Takes every run, like a worker of the pool."""
    ended = threading.Event()

    def take() -> None:
        while not ended.wait(0.2):
            world.work_off()

    thread = threading.Thread(target=take)
    thread.start()
    yield
    ended.set()
    thread.join()


@pytest.mark.long
def test_the_commands_of_the_page_push_and_pull_a_model_and_a_dataset(
    hub: PushHub, world: PushWorld, real_policy: Any, rows: Any, worker: None, url: str, token: str, tmp_path: Path
) -> None:
    (tmp_path / "hub-token.txt").write_text(WRITES + "\n")
    world.living_worker()
    printed = shell(blocks("steerboard hub-token set", "steerboard models fit"), url, token, tmp_path)
    assert "tags:\n- steerboard" in printed
    assert f"Pushed dt to {hub.url}/our-lab/steered (private)" in printed
    model = hub.repositories["model", "our-lab/steered"]
    assert len(model.commits) == 1
    card = (model.files() or {})["README.md"].decode()
    assert yaml.safe_load(card.split("---\n")[1])["license"] == "apache-2.0"
    assert hub.repositories["dataset", "our-lab/preferences"].private
    back = world.get("models/steered-again")
    ours = world.get("models/dt")
    assert (back["role"], back["info"]["condition"]) == ("policy", ours["info"]["condition"])
    assert world.get("datasets/hh-again")["rows"] == len(rows_of(world, "hh"))
    assert sorted(rows_of(world, "hh-again")) == sorted(rows_of(world, "hh"))


def rows_of(world: PushWorld, name: str) -> list[str]:
    text = world.client.get(world.url(f"datasets/{name}/export"), params={"format": "jsonl"}).text
    return [json.dumps(json.loads(line), sort_keys=True) for line in text.splitlines()]
