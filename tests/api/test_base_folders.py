"""Base models by path over HTTP: who may make the server look at its own files, and bringing a folder to it instead."""

from __future__ import annotations

import hashlib
import os
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from api_world import ApiWorld
from fastapi import FastAPI
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.app.main import attach
from steerboard.platform.database import transaction
from steerboard.platform.settings import Settings, get_settings
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.tables import Model
from steerboard.runs.tables import Run
from steerboard_contracts.stage.inputs import ModelInput
from steerboard_contracts.stage.spec import UPLOADED, StageSpec
from steerboard_workers.supervisor.preparation import prepare
from support.servers.app_client import AppClient

RECIPE = """\
name: small
inputs: {base: {type: model}, data: {type: dataset, kind: preferences}}
stages: {reward: {run: train, method: reward_model, model: $base, data: $data}}
"""
FILES = {"config.json": b'{"model_type": "llama"}', "model.safetensors": b"12345678", "tokenizer.json": b"{}"}


@pytest.fixture
def models(home: Path, tmp_path: Path) -> Path:
    """A folder with the models `mine` and, out of reach below the home, `theirs`."""
    for folder in (tmp_path / "models" / "mine", home / "cache" / "models" / "theirs"):
        folder.mkdir(parents=True)
        for name, content in FILES.items():
            (folder / name).write_bytes(content)
    return tmp_path / "models"


@pytest.fixture
def world(
    shared_app: FastAPI,
    models: Path,
    settings: Settings,
    sessions: sessionmaker[Session],
    project: Project,
    token: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[ApiWorld]:
    """Its server may read the folder of `models` and the home's."""
    monkeypatch.setenv("STEERBOARD_MODEL_ROOTS", f"{models}:{settings.home}")
    get_settings.cache_clear()
    attach(shared_app, get_settings(), sessions)
    with AppClient(shared_app, headers={"Authorization": f"Bearer {token}"}) as client:
        made = ApiWorld(client, sessions, project)
        made.dataset("hh")
        yield made


@contextmanager
def touched(*folders: Path) -> Iterator[list[str]]:
    """What this process opens or lists below the folders in between."""
    seen: list[str] = []
    watching = True

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if watching and event in ("open", "os.listdir", "os.scandir") and isinstance(arguments[0], str | bytes):
            name = os.fsdecode(arguments[0])
            if name.startswith(tuple(map(str, folders))):
                seen.append(name)

    sys.addaudithook(hook)
    yield seen
    watching = False


def asked(world: ApiWorld, path: str, body: dict[str, Any], headers: dict[str, str] | None = None) -> httpx.Response:
    return world.client.post(world.url(path), json=body, headers=headers or {})


def recipe(source: Path | str) -> dict[str, Any]:
    return {"text": RECIPE, "set": [f"base={source}", "data=hh"]}


def base_run(source: Path | str) -> dict[str, Any]:
    return {"config": {"run": "base", "source": str(source)}, "inputs": {}}


def test_who_may_only_read_learns_nothing_of_files_and_causes_no_look_at_them(world: ApiWorld, models: Path) -> None:
    viewer = world.token("read")
    home = models.parent / "home"
    sources = [models / "mine", models / "nothing", models / "mine/config.json", home / "cache/models/theirs", "/etc"]
    with touched(models, home / "cache", Path("/etc")) as seen:
        plans = []
        for source in sources:
            answer = asked(world, "recipes/check", recipe(source), viewer)
            assert answer.status_code == 200, answer.text
            plans.append(answer.text.replace(str(source), "PATH"))
            draft = asked(world, "recipes/draft", recipe(source), viewer)
            assert draft.json()["faults"] == []
            estimate = asked(world, "runs/estimate", base_run(source), viewer)
            assert estimate.status_code == 200, estimate.text
            for path, body in (("pipelines", recipe(source)), ("runs", base_run(source))):
                assert asked(world, path, body, viewer).status_code == 403
    assert len(set(plans)) == 1
    assert seen == []
    # As typed: where the server keeps its own folders is no business of theirs either.
    plan = asked(world, "recipes/check", recipe("./mine"), viewer).json()
    assert plan["stages"][0]["config"]["source"] == "./mine"


def test_a_folder_below_the_roots_starts_as_where_it_really_is(world: ApiWorld, models: Path) -> None:
    (models / "alias").symlink_to("mine")
    runner = world.token("read", "run")
    plan = asked(world, "recipes/check", recipe(models / "alias"), runner).json()
    assert plan["stages"][0]["config"]["source"] == str(models / "mine")
    started = asked(world, "runs", base_run(models / "alias"), runner)
    assert started.status_code == 201
    config = started.json()["config"]
    assert (config["source"], len(config["fingerprint"])) == (str(models / "mine"), 64)


@pytest.mark.parametrize("where", ["models/nothing", "home/cache/models/theirs", "elsewhere", "models/out"])
def test_a_folder_out_of_reach_is_refused_with_one_code_and_one_message(
    world: ApiWorld, models: Path, where: str
) -> None:
    (models / "out").symlink_to(models.parent / "home" / "cache" / "models" / "theirs")
    source = models.parent / where
    answer = asked(world, "pipelines", recipe(source))
    assert (answer.status_code, answer.json()["code"]) == (422, "folder_not_allowed")
    alone = asked(world, "runs", base_run(source))
    assert (alone.status_code, alone.json()["code"]) == (422, "folder_not_allowed")
    said = {problem.json()["errors"][0]["message"].replace(str(source), "PATH") for problem in (answer, alone)}
    assert said == {"there is no folder 'PATH' below those that may be read here (STEERBOARD_MODEL_ROOTS)"}


def test_a_run_of_its_own_takes_a_folder_for_its_model_as_a_recipe_does(world: ApiWorld, models: Path) -> None:
    config = {"run": "train", "method": "reward_model"}
    body = {"config": config, "inputs": {"model": str(models / "mine"), "data": "hh"}}
    started = asked(world, "runs", body)
    assert (started.status_code, started.json()["state"]) == (201, "pending"), started.text
    (first,) = [run for run in world.get("runs")["items"] if run["kind"] == "base"]
    config = world.get(f"runs/{first['id']}")["config"]
    assert (first["state"], config["source"]) == ("queued", str(models / "mine"))
    (given,) = [input_ for input_ in started.json()["inputs"] if input_["name"] == "model"]
    assert (given["type"], given["id"]) == ("run", first["id"])
    assert asked(world, "runs/estimate", body).status_code == 200


def test_a_folder_out_of_reach_is_refused_at_the_input_and_starts_nothing(world: ApiWorld, models: Path) -> None:
    config = {"run": "train", "method": "reward_model"}
    answer = asked(world, "runs", {"config": config, "inputs": {"model": "/elsewhere/model", "data": "hh"}})
    assert (answer.status_code, answer.json()["code"]) == (422, "folder_not_allowed")
    assert [fault["location"] for fault in answer.json()["errors"]] == ["inputs.model"]
    assert world.get("runs")["items"] == []


def test_links_in_a_folder_that_lead_elsewhere_refuse_it(world: ApiWorld, models: Path) -> None:
    (models / "mine" / "tokenizer_config.json").symlink_to("/etc/hostname")
    answer = asked(world, "runs", base_run(models / "mine"))
    assert (answer.status_code, answer.json()["code"]) == (422, "unsafe_model_file")


def test_a_form_is_told_at_its_field(world: ApiWorld, models: Path) -> None:
    faults = asked(world, "recipes/draft", recipe(models / "nothing")).json()["faults"]
    assert [fault["field"] for fault in faults] == ["inputs.base"]
    assert "there is no folder" in faults[0]["message"]


def test_a_fingerprint_is_never_the_callers(world: ApiWorld, models: Path) -> None:
    body = base_run(models / "mine")
    body["config"]["fingerprint"] = "0" * 64
    assert asked(world, "runs", body).json()["config"]["fingerprint"] != "0" * 64


def test_a_run_whose_settings_take_no_adapter_is_refused_one(world: ApiWorld) -> None:
    with transaction(world.sessions) as session:
        session.get_one(Model, world.model("lora")).info = {"lora": {"rank": 8}}
    config = {"run": "train", "method": "reward_model", "strategy": "zero3"}
    answer = asked(world, "runs", {"config": config, "inputs": {"model": "lora", "data": "hh"}})
    assert "is an adapter over its base" in answer.json()["errors"][0]["message"]
    started = asked(
        world, "runs", {"config": {**config, "strategy": "zero2"}, "inputs": {"model": "lora", "data": "hh"}}
    )
    assert started.status_code == 201, started.text


# -- uploads ------------------------------------------------------------------------------------------------------


def announce(files: dict[str, bytes] = FILES, name: str = "mine") -> dict[str, Any]:
    return {
        "name": name,
        "files": [
            {"path": path, "sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
            for path, content in files.items()
        ],
    }


def bring(world: ApiWorld, upload: dict[str, Any], path: str, content: bytes, **headers: str) -> httpx.Response:
    url = world.url(f"model-uploads/{upload['hash']}/files/{path}")
    return world.client.post(url, files={"file": ("f", content)}, headers=headers)


def test_an_uploaded_folder_is_a_base_model_once_all_of_it_has_come(
    world: ApiWorld, store: ArtifactStore, tmp_path: Path
) -> None:
    upload = world.post("model-uploads", announce(), status=201)
    assert upload["missing"] == sorted(FILES)
    early = asked(world, "runs", base_run(upload["source"]))
    assert (early.status_code, early.json()["code"]) == (422, "unknown_model")
    for path, content in FILES.items():
        upload = bring(world, upload, path, content).json()
    assert upload["missing"] == []
    again = world.post("model-uploads", announce(name="the same"), status=201)
    assert (again["source"], again["missing"]) == (upload["source"], [])

    started = asked(world, "runs", base_run(upload["source"]))
    assert started.status_code == 201
    spec = prepared(world, store, started.json()["id"], tmp_path / "work")
    given = spec.inputs[UPLOADED]
    assert isinstance(given, ModelInput)
    assert {path.name: path.read_bytes() for path in Path(given.path).iterdir()} == FILES
    assert asked(world, "recipes/check", recipe(upload["source"])).status_code == 200


def prepared(world: ApiWorld, store: ArtifactStore, run: str, folder: Path) -> StageSpec:
    folder.mkdir()
    with transaction(world.sessions) as session:
        row = session.get_one(Run, uuid.UUID(run))
    with ExitStack() as holds:
        return prepare(world.sessions, store, get_settings(), row, folder, folder, holds, threads=1)


def test_another_projects_model_is_not_had_by_its_hashes(
    world: ApiWorld, sessions: sessionmaker[Session], project: Project
) -> None:
    upload = world.post("model-uploads", announce(), status=201)
    for path, content in FILES.items():
        bring(world, upload, path, content)
    with transaction(sessions) as session:
        other = Project(name="other", split_salt="s", held_out_fraction=0.1)
        session.add(other)
    there = ApiWorld(world.client, sessions, other)
    there.client.headers.update(there.token("read", "write", "run", project=other))
    assert asked(there, "runs", base_run(upload["source"])).json()["code"] == "unknown_model"
    assert there.client.get(there.url(f"model-uploads/{upload['hash']}")).status_code == 404
    theirs = there.post("model-uploads", announce(), status=201)
    # All of its blobs are stored, and yet all of them are missing: they have not come for this project.
    assert theirs["missing"] == sorted(FILES)
    assert bring(there, theirs, "config.json", b"other").json()["code"] == "upload_differs"
    assert asked(there, "runs", base_run(theirs["source"])).json()["code"] == "unknown_model"


@pytest.mark.parametrize(
    "path", ["../config.json", "/etc/passwd", "a/config.json", "model.bin", "x.py", ".config.json", "tokenizer\n.json"]
)
def test_files_that_no_model_has_are_not_announced(world: ApiWorld, path: str) -> None:
    body = announce({**FILES, path: b""})
    assert asked(world, "model-uploads", body).status_code == 422
    upload = world.post("model-uploads", announce(), status=201)
    assert bring(world, upload, quote(path, safe=""), b"").status_code in (404, 405)


def test_uploads_are_bounded_and_for_those_who_may_write(world: ApiWorld) -> None:
    large = announce()
    large["files"][1]["size"] = 1 << 50
    assert asked(world, "model-uploads", large).json()["code"] == "too_large"
    assert asked(world, "model-uploads", announce({"config.json": b""})).status_code == 422
    assert asked(world, "model-uploads", {**announce(), "files": announce()["files"] * 2}).status_code == 422
    upload = world.post("model-uploads", announce(), status=201)
    viewer = world.token("read")
    assert bring(world, upload, "config.json", FILES["config.json"], **viewer).status_code == 403
    assert asked(world, "model-uploads", announce(), viewer).status_code == 403
