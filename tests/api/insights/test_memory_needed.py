"""A launch form's estimate of a run's memory: by pool, for its weakest living worker."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from api_world import ApiWorld
from sqlalchemy import func

from steerboard.platform.database import transaction
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.tables import Artifact, Model
from steerboard.runs.tables import WorkerRow

LLAMA_8B = {
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
}
GIB = 1 << 30


@pytest.fixture(autouse=True)
def _llama(world: ApiWorld, store: ArtifactStore, tmp_path: Path) -> None:
    """A model with a shape and a window of 512, and data to train it on."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(LLAMA_8B))
    manifest = store.put_folder(tmp_path / "model")
    with transaction(world.sessions) as session:
        session.add(Artifact(hash=manifest.hash, size=manifest.size, manifest={"files": manifest.files}))
        session.flush()
        info = {"max_length": 512}
        session.add(
            Model(project_id=world.project.id, name="llama", role="base", artifact_hash=manifest.hash, info=info)
        )
    world.dataset("texts", "instructions")


def workers(world: ApiWorld, *known: tuple[str, list[str], int, bool], silent: bool = False) -> None:
    """(pool, ids of devices, GiB of each, whether they are GPUs)."""
    with transaction(world.sessions) as session:
        for number, (pool, ids, memory, gpus) in enumerate(known):
            devices = {"ids": ids, "memory": memory * GIB, "gpus": [{"id": gpu} for gpu in ids] if gpus else []}
            worker = WorkerRow(name=f"{pool}-{number}", pool=pool, host="h", pid=number, devices=devices)
            session.add(worker)
            session.flush()
            if silent:
                worker.heartbeat_at = func.clock_timestamp() - dt.timedelta(hours=1)


def needed(world: ApiWorld, method: str = "sft", **config: Any) -> list[dict[str, Any]]:
    data = "hh" if method == "reward_model" else "texts"
    body = {"config": {"run": "train", "method": method, **config}, "inputs": {"model": "llama", "data": data}}
    memory: list[dict[str, Any]] = world.post("runs/estimate", body)["memory"]
    return memory


def test_each_pool_is_judged_by_its_weakest_worker(world: ApiWorld) -> None:
    eight = [str(number) for number in range(8)]
    workers(world, ("large", eight, 80, True), ("large", eight, 40, True), ("small", [], 64, False))
    large, small = needed(world, strategy="zero3", gradient_checkpointing=True)
    assert (large["pool"], large["on_gpu"], large["processes"], large["device_bytes"]) == ("large", True, 8, 40 * GIB)
    assert large["fits"]
    assert (small["pool"], small["on_gpu"], small["processes"], small["fits"]) == ("small", False, 1, False)
    large, _ = needed(world)
    assert not large["fits"]
    assert large["bytes"] == sum(bytes_ for part, bytes_ in large["parts"].items() if part != "host")


def test_without_living_workers_a_gpu_of_unknown_size_is_told_of(world: ApiWorld) -> None:
    workers(world, ("large", ["0"], 80, True), silent=True)
    (only,) = needed(world)
    assert (only["on_gpu"], only["device_bytes"], only["fits"]) == (True, None, None)


def test_a_pass_is_as_long_as_the_longest_sample_at_least_and_a_pair_is_two(world: ApiWorld) -> None:
    def activations(*method: str, **config: Any) -> int:
        return int(needed(world, *method, **config)[0]["parts"]["activations"])

    assert activations(micro_tokens=16) == activations(micro_tokens=512) == activations(micro_tokens=1024) / 2
    assert activations("reward_model", micro_tokens=16) == activations(micro_tokens=1024)
    assert activations("reward_model", micro_tokens=16, max_length=100) == activations(micro_tokens=200, max_length=100)


def test_roles_with_gpus_of_their_own_are_judged_one_by_one(world: ApiWorld) -> None:
    workers(world, ("large", [str(number) for number in range(8)], 80, True))
    world.dataset("questions", "prompts")

    def placed(**placement: int) -> dict[str, Any]:
        config = {"run": "train", "method": "grpo", "rules": [{"kind": "regex", "pattern": "a"}], "kl_weight": 0.1}
        config |= {"strategy": "zero3", "gradient_checkpointing": True, "placement": placement}
        inputs = {"model": "llama", "data": "questions"}
        ((need),) = world.post("runs/estimate", {"config": config, "inputs": inputs})["memory"]
        return dict(need)

    need = placed(rollout=2, reference=1)
    assert {role["role"]: role["devices"] for role in need["roles"]} == {"training": 5, "rollout": 2, "reference": 1}
    training, *others = need["roles"]
    assert (need["bytes"], need["processes"]) == (training["bytes"], 5)
    assert need["fits"]
    assert all(role["fits"] and role["bytes"] < training["bytes"] for role in others)
    # One that trains has all the rest.
    crowded = placed(rollout=7)
    assert (crowded["fits"], [role["fits"] for role in crowded["roles"]]) == (False, [False, True])
    none = placed(rollout=8)
    assert (none["fits"], none["roles"]) == (False, [])
    assert "have no room" in none["problem"]


def test_devices_for_a_role_without_a_model_are_refused(world: ApiWorld) -> None:
    config = {"run": "train", "method": "grpo", "rules": [{"kind": "regex", "pattern": "a"}]}
    world.dataset("questions", "prompts")
    body = {"config": {**config, "placement": {"rewards": 1}}, "inputs": {"model": "llama", "data": "questions"}}
    problem = world.post("runs", body, status=422)
    (fault,) = problem["errors"]
    assert (problem["code"], fault["location"]) == ("invalid_run", "config.placement")
    assert "no model to hold" in fault["message"]
