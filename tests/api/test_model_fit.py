"""A model's size, settings and memory before it is downloaded, asked of a hub on this machine."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from api_world import ApiWorld

from steerboard.platform.database import transaction
from steerboard.runs.tables import WorkerRow
from support.models.model_folders import TINY_CONFIG, gguf, safetensors
from support.servers.hub_server import COMMIT, HubModels, hub_of_models, point_at

CONFIG = {**TINY_CONFIG, "max_position_embeddings": 2048}
FILES = {
    "config.json": json.dumps(CONFIG).encode(),
    "tokenizer_config.json": b'{"chat_template": "{{ messages }}"}',
    "model.safetensors": safetensors(bytes(200_000)),
    "model.gguf": gguf(),
    "pytorch_model.bin": bytes(300_000),
    "README.md": b"",
}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubModels]:
    with hub_of_models(monkeypatch) as hub:
        hub.models["org/small"] = dict(FILES)
        hub.cards["org/small"] = {"license": "apache-2.0"}
        yield hub


def worker(world: ApiWorld, name: str, memory: int | None, pool: str = "default") -> None:
    with transaction(world.sessions) as session:
        devices: dict[str, Any] = {"ids": [], "gpus": [], **({"memory": memory} if memory else {})}
        session.add(WorkerRow(name=name, pool=pool, host="h", pid=1, devices=devices))


def fit(world: ApiWorld, **asked: Any) -> httpx.Response:
    answer: httpx.Response = world.client.post(world.url("models/fit"), json=asked)
    return answer


def test_a_hub_model_is_weighed_without_its_weights(world: ApiWorld, hub: HubModels) -> None:
    weighed = fit(world, source="org/small").json()
    read = ("config.json", "tokenizer_config.json", "model.safetensors")
    assert (weighed["revision"], weighed["file"], weighed["gated"]) == (COMMIT, None, False)
    assert (weighed["files"], weighed["size"]) == (3, sum(len(FILES[name]) for name in read))
    assert (weighed["architecture"], weighed["template"], weighed["licence"]) == (
        "LlamaForCausalLM",
        True,
        "apache-2.0",
    )
    assert weighed["parameters"] == len(FILES["model.safetensors"]) // 2
    assert set(hub.fetched) == {"config.json", "tokenizer_config.json"}


def test_each_worker_gets_what_the_model_needs_of_it(world: ApiWorld, hub: HubModels) -> None:
    worker(world, "large", 64 << 30)
    worker(world, "small", 100 << 20)
    worker(world, "unknown", None)
    worker(world, "playground", 64 << 30, pool="interactive")
    workers = {worker["name"]: worker for worker in fit(world, source="org/small").json()["workers"]}
    assert set(workers) == {"large", "small", "unknown"}
    verdicts = {name: [need["fits"] for need in worker["needs"]] for name, worker in workers.items()}
    assert verdicts == {"large": [True] * 3, "small": [False] * 3, "unknown": [None] * 3}
    needs = {need["use"]: need["bytes"] for need in workers["large"]["needs"]}
    assert needs["training"] > needs["lora"] > 450 << 20


def test_of_a_gguf_file_only_the_header_is_fetched(world: ApiWorld, hub: HubModels) -> None:
    hub.models["org/quantised"] = {"a.gguf": gguf(values=4 << 20), "b.gguf": gguf(), "README.md": b""}
    several = fit(world, source="org/quantised")
    assert (several.status_code, several.json()["code"]) == (422, "several_gguf_files")
    assert [fault["location"] for fault in several.json()["errors"]] == ["a.gguf", "b.gguf"]
    weighed = fit(world, source="org/quantised:a.gguf").json()
    assert (weighed["file"], weighed["architecture"], weighed["parameters"]) == ("a.gguf", "llama", 4 << 20)
    assert (weighed["files"], weighed["size"]) == (1, len(hub.models["org/quantised"]["a.gguf"]))
    assert hub.sent["a.gguf"] < weighed["size"] / 2


def test_a_gated_model_is_listed_as_such_or_refused_with_what_to_do(world: ApiWorld, hub: HubModels) -> None:
    hub.gated.add("org/small")
    refused = fit(world, source="org/small").json()
    assert (refused["code"], "its terms must be accepted" in refused["detail"]) == ("hub_gated", True)
    assert "hf auth login" in refused["hint"]


@pytest.mark.parametrize(
    ("source", "code", "what"),
    [
        ("org/nothing", "hub_not_found", "no model org/nothing, or it is private"),
        ("org/small@v9", "hub_not_found", "no revision v9"),
        ("org/small:other.gguf", "not_a_model", "no file other.gguf; it has model.gguf"),
        ("./folder", "unknown_model", "not a name on the hub"),
        ("org/../other", "unknown_model", "not a name on the hub"),
    ],
)
def test_what_is_not_on_the_hub_is_a_typed_error(
    world: ApiWorld, hub: HubModels, source: str, code: str, what: str
) -> None:
    answer = fit(world, source=source)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert what in answer.json()["detail"]


def test_a_hub_that_cannot_be_reached_is_a_typed_error(world: ApiWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        point_at(f"http://127.0.0.1:{free.getsockname()[1]}", monkeypatch)
        answer = fit(world, source="org/small").json()
    assert (answer["code"], "HF_ENDPOINT" in answer["hint"]) == ("hub_unavailable", True)


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff"])
def test_settings_that_cannot_be_read_are_the_models_fault(world: ApiWorld, hub: HubModels, content: bytes) -> None:
    hub.models["org/small"]["config.json"] = content
    assert fit(world, source="org/small").json()["code"] == "bad_model"


def test_facts_of_a_folder_are_weighed_without_the_hub(world: ApiWorld) -> None:
    worker(world, "large", 64 << 30)
    weighed = fit(world, facts={"config": CONFIG, "weights": 200_000, "size": 300_000, "files": 4}).json()
    assert (weighed["parameters"], weighed["size"], weighed["template"]) == (100_000, 300_000, None)
    assert [need["fits"] for need in weighed["workers"][0]["needs"]] == [True] * 3
    assert fit(world).json()["code"] == fit(world, source="org/small", facts={}).json()["code"] == "invalid_request"
