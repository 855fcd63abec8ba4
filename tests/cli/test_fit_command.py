"""`steerboard models fit`: folders and files of this machine, before anything is sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.orm import Session, sessionmaker

from steerboard.platform.database import transaction
from steerboard.runs.tables import WorkerRow
from support.models.model_folders import TINY_CONFIG, gguf, safetensors
from support.processes.command_line import Steerboard, steerboard, url
from support.servers.hub_server import HubModels, hub_of_models

__all__ = ["steerboard", "url"]


@pytest.fixture
def folder(tmp_path: Path, sessions: sessionmaker[Session], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where the command is given, with `my-model`, and a worker with room for it."""
    made = tmp_path / "my-model"
    made.mkdir()
    (made / "config.json").write_text(json.dumps(TINY_CONFIG))
    (made / "model.safetensors").write_bytes(safetensors(bytes(200_000)))
    (made / "README.md").write_text("---\nlicense: mit\n---\n")
    memory(sessions, 8 << 30)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def memory(sessions: sessionmaker[Session], count: int) -> None:
    with transaction(sessions) as session:
        session.query(WorkerRow).delete()
        devices = {"ids": [], "gpus": [], "memory": count}
        session.add(WorkerRow(name="w-1", pool="default", host="h", pid=1, devices=devices))


def test_a_folder_is_weighed_and_nothing_is_sent(steerboard: Steerboard, url: str, token: str, folder: Path) -> None:
    done = steerboard(url, token, "models", "fit", "./my-model")
    assert (done.returncode, done.stderr) == (0, "")
    assert "LlamaForCausalLM, 100,0" in done.stdout
    assert "no chat template, so the plain one is used; licence mit" in done.stdout
    assert done.stdout.count(" fits") == 3


def test_a_model_that_fits_nowhere_ends_with_an_exit_code(
    steerboard: Steerboard, url: str, token: str, folder: Path, sessions: sessionmaker[Session]
) -> None:
    memory(sessions, 100 << 20)
    done = steerboard(url, token, "models", "fit", "./my-model")
    assert (done.returncode, done.stdout.count(" too large")) == (1, 3), done.stdout


def test_a_gguf_file_has_its_types(steerboard: Steerboard, url: str, token: str, folder: Path) -> None:
    (folder / "a.gguf").write_bytes(gguf())
    done = steerboard(url, token, "models", "fit", "./a.gguf", "--json")
    document = json.loads(done.stdout)
    assert (document["architecture"], document["parameters"], document["size"]) == (
        "llama",
        8,
        (folder / "a.gguf").stat().st_size,
    )


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubModels]:
    with hub_of_models(monkeypatch) as hub:
        yield hub


def test_a_hub_name_is_asked_by_the_server(
    steerboard: Steerboard, url: str, token: str, folder: Path, hub: HubModels
) -> None:
    hub.models["org/small"] = {path.name: path.read_bytes() for path in (folder / "my-model").iterdir()}
    done = steerboard(url, token, "models", "fit", "org/small")
    assert (done.returncode, "LlamaForCausalLM" in done.stdout) == (0, True), done.stderr
    missing = steerboard(url, token, "models", "fit", "org/nothing")
    assert (missing.returncode, "or it is private" in missing.stderr) == (1, True)
