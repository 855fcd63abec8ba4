"""Pushes from a request to what a hub has, and back: cards, tokens, and the run of a worker."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from pushed_things import PushWorld, register
from sqlalchemy import text
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.tables import Model
from steerboard_contracts.lora import LoraConfig
from steerboard_contracts.prompts import Normaliser
from support.models.model_folders import info_of, write_model
from support.servers.push_hub import WRITES, PushHub

URL = "/api/v1/projects/default"
NORMALISER = Normaliser(mean=2.0, sd=4.0, n=100, reward_source="judge-rm")


def test_the_card_of_a_policy_tells_what_a_stranger_needs(
    client: httpx.Client, hub: PushHub, steered: uuid.UUID
) -> None:
    written = client.get(f"{URL}/models/dt/card", params={"repo": "lab/dt", "licence": "apache-2.0"}).json()
    head, text_ = written["text"].split("---\n")[1:]
    metadata = yaml.safe_load(head)
    assert metadata["license"] == "apache-2.0"
    assert (metadata["base_model"], metadata["base_model_relation"]) == ("org/tiny", "finetune")
    assert (metadata["library_name"], metadata["pipeline_tag"]) == ("transformers", "text-generation")
    assert "steerboard" in metadata["tags"]
    assert "-5 to 5 in steps of 0.1; 5 unless asked" in text_
    # Rewards of -10, 14, -2 and 6 as z of mean 2 and sd 4.
    assert "Seen in training: -3.00 to 3.00; the middle 60% of the rows -1.00 to 1.00" in text_
    assert "rm_score='5.00'" in text_
    assert "| `align` |" in text_
    assert "lr 2e-05" in text_
    assert "lora rank 8" in text_
    assert "| `hh` | preferences | 60 |" in text_
    assert "Base model `org/tiny@" in text_
    assert ": mit." in text_
    assert "run align: the held-out loss rose" in text_
    assert written["token"] is None


def test_an_adapter_is_asked_for_only_of_a_model_that_has_one(
    client: httpx.Client, hub: PushHub, steered: uuid.UUID
) -> None:
    refused = client.get(f"{URL}/models/dt/card", params={"weights": "adapter"})
    assert (refused.status_code, refused.json()["code"]) == (422, "not_an_adapter")
    started = client.post(f"{URL}/models/dt/push", json={"repo": "lab/dt", "weights": "adapter"})
    assert (started.status_code, started.json()["code"]) == (422, "not_an_adapter")


def test_the_base_of_an_adapter_is_the_hubs_only_where_its_weights_are_the_hubs(
    client: httpx.Client,
    hub: PushHub,
    steered: uuid.UUID,
    sessions: sessionmaker[Session],
    store: ArtifactStore,
    project: Project,
    tmp_path: Path,
) -> None:
    with transaction(sessions) as session:
        base = session.query(Model).filter_by(name="base").one().id
    info = info_of("sft", "sft").model_copy(update={"lora": LoraConfig(rank=8)})
    for name, below in (("same", b"base"), ("other", b"changed")):
        folder = tmp_path / name
        write_model(folder / "base", weights=below)
        register(sessions, store, project, tmp_path, name, info, parent_id=base)
    card = client.get(f"{URL}/models/same/card", params={"weights": "adapter"}).json()
    assert card["base"] == f"org/tiny@{'b' * 40}"
    assert yaml.safe_load(card["text"].split("---\n")[1])["base_model_relation"] == "adapter"
    unknown = client.get(f"{URL}/models/other/card", params={"weights": "adapter"})
    assert (unknown.status_code, unknown.json()["code"]) == (422, "hub_base_unknown")
    named = client.get(f"{URL}/models/other/card", params={"weights": "adapter", "base": "lab/sft"})
    assert named.json()["base"] == "lab/sft"


@pytest.mark.parametrize("repo", ["no-owner", "../x", "a/b/c", "org/", "org/na me", "-a/b"])
def test_what_is_no_repository_is_refused_at_once(
    repo: str, client: httpx.Client, hub: PushHub, steered: uuid.UUID
) -> None:
    refused = client.post(f"{URL}/models/dt/push", json={"repo": repo})
    assert refused.status_code == 422
    assert hub.repositories == {}


def test_a_model_is_pushed_by_a_worker_with_the_projects_token_and_pulled_again(
    client: httpx.Client, hub: PushHub, steered: uuid.UUID, world: PushWorld, sessions: sessionmaker[Session]
) -> None:
    assert client.put(f"{URL}/hub-token", json={"token": WRITES}).json() == {"source": "project"}
    started = client.post(f"{URL}/models/dt/push", json={"repo": "lab/dt"}).json()
    assert world.work_off()
    run = client.get(f"{URL}/runs/{started['id']}").json()
    assert run["state"] == "succeeded", run
    repository = hub.repositories["model", "lab/dt"]
    assert repository.private
    assert set(repository.files() or {}) >= {"README.md", "model.safetensors", "config.json", "steerboard.json"}
    assert run["summary"]["commit"] == repository.head
    # The fit check sees the private repository by the same token.
    fit = client.post(f"{URL}/models/fit", json={"source": "lab/dt"})
    assert fit.status_code == 200, fit.text
    assert fit.json()["revision"] == repository.head
    said = json.dumps(run) + client.get(f"{URL}/runs/{started['id']}/logs").text
    assert WRITES not in said
    with transaction(sessions) as session:
        stored = session.execute(text("SELECT hub_token_sealed FROM projects")).scalars().all()
        assert all(WRITES not in (value or "") for value in stored)


def test_a_dataset_is_pushed_by_split_and_pulled_again_row_for_row(
    client: httpx.Client, hub: PushHub, rows: Any, world: PushWorld
) -> None:
    client.put(f"{URL}/hub-token", json={"token": WRITES})
    started = client.post(f"{URL}/datasets/hh/push", json={"repo": "lab/hh", "licence": "cc-by-4.0"}).json()
    assert world.work_off()
    run = client.get(f"{URL}/runs/{started['id']}").json()
    assert run["state"] == "succeeded", run
    files = hub.repositories["dataset", "lab/hh"].files() or {}
    splits = {path for path in files if path.startswith("data/")}
    assert splits == {"data/train-00000-of-00001.parquet", "data/held_out-00000-of-00001.parquet"}
    metadata = yaml.safe_load(files["README.md"].decode().split("---\n")[1])
    assert metadata["license"] == "cc-by-4.0"
    assert [one["split"] for one in metadata["configs"][0]["data_files"]] == ["train", "held_out"]
    back = client.post(f"{URL}/datasets/import", files={"hub": (None, "lab/hh:data"), "name": (None, "back")})
    assert back.status_code == 201, back.text

    def samples(name: str) -> list[str]:
        exported = client.get(f"{URL}/datasets/{name}/export", params={"format": "jsonl"}).text
        return sorted(exported.splitlines())

    assert samples("back") == samples("hh")


def test_without_any_token_the_run_fails_with_the_way_out(
    client: httpx.Client, hub: PushHub, steered: uuid.UUID, world: PushWorld
) -> None:
    started = client.post(f"{URL}/models/dt/push", json={"repo": "lab/dt"}).json()
    assert world.work_off()
    run = client.get(f"{URL}/runs/{started['id']}").json()
    assert (run["state"], run["reason_code"]) == ("failed", "hub_token_missing")
    assert "settings" in run["error"]["hint"]


def test_the_token_goes_in_and_never_comes_out(client: httpx.Client, hub: PushHub, project: Project) -> None:
    assert client.get(f"{URL}/hub-token").json() == {"source": None}
    assert client.put(f"{URL}/hub-token", json={"token": "with space"}).status_code == 422
    assert "hf_x" not in client.put(f"{URL}/hub-token", json={"token": "hf_x"}).text
    assert client.get(f"{URL}/hub-token").json() == {"source": "project"}
    assert client.delete(f"{URL}/hub-token").status_code == 204
    assert client.get(f"{URL}/hub-token").json() == {"source": None}


def test_the_servers_own_token_is_told_by_its_place(
    client: httpx.Client, hub: PushHub, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_server")
    assert client.get(f"{URL}/hub-token").json() == {"source": "server"}


def test_a_push_is_no_run_that_a_form_or_a_recipe_starts(client: httpx.Client, project: Project) -> None:
    config = {"run": "push", "repo": "lab/dt", "card": "x"}
    refused = client.post(f"{URL}/runs", json={"config": config, "inputs": {}})
    assert refused.status_code == 422
    assert "an endpoint of its own" in refused.text
