"""`--set base=./my-model` against a server that may not read this machine's folders."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.imports.loading import import_file
from steerboard.platform.database import transaction
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.uploads.service import finished
from steerboard.runs.tables import Run
from support.models.model_folders import gguf
from support.processes.command_line import Steerboard, steerboard, url

__all__ = ["steerboard", "url"]

RECIPE = """\
name: small
inputs: {base: {type: model}, data: {type: dataset, kind: prompts}}
stages: {answers: {run: generate, model: $base, data: $data}}
"""


@pytest.fixture
def folder(tmp_path: Path, sessions: sessionmaker[Session], project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where the command is given, with a recipe and the model `my-model`."""
    here = tmp_path / "laptop"
    (here / "my-model").mkdir(parents=True)
    (here / "recipe.yaml").write_text(RECIPE)
    (here / "my-model" / "config.json").write_text("{}")
    (here / "my-model" / "model.safetensors").write_bytes(b"weights")
    (here / "my-model" / "train.py").write_text("")
    (here / "my-model" / "additional_chat_templates").mkdir()
    (here / "my-model" / "additional_chat_templates" / "tool_use.jinja").write_text("{{ tools }}")
    (here / "rows.jsonl").write_text('{"prompt": "Hi"}\n')
    with transaction(sessions) as session:
        import_file(session, project, path=here / "rows.jsonl", name="data", kind="prompts")
    monkeypatch.chdir(here)
    return here


def test_a_folder_is_uploaded_once_and_the_run_begins_with_it(
    steerboard: Steerboard,
    url: str,
    token: str,
    folder: Path,
    sessions: sessionmaker[Session],
    project: Project,
    store: ArtifactStore,
) -> None:
    command = ("run", "recipe.yaml", "--set", "base=./my-model", "--set", "data=data")
    first = steerboard(url, token, *command)
    assert (first.returncode, "Uploading" in first.stderr) == (0, True), first.stderr
    again = steerboard(url, token, *command)
    assert (again.returncode, "Uploading" in again.stderr) == (0, False), again.stderr
    with transaction(sessions) as session:
        sources = session.scalars(select(Run.config["source"].astext).where(Run.kind == "base")).all()
        manifest = finished(session, project, sources[0])
    assert len(set(sources)) == 1
    held = {file["path"]: b"".join(store.read(file["sha256"])) for file in manifest.files}
    template = {"additional_chat_templates/tool_use.jinja": b"{{ tools }}"}
    assert held == {"config.json": b"{}", "model.safetensors": b"weights", **template}


def test_a_run_of_its_own_and_an_import_take_a_folder_here(
    steerboard: Steerboard, url: str, token: str, folder: Path, sessions: sessionmaker[Session]
) -> None:
    started = steerboard(url, token, "runs", "start", "generate", "--input", "model=./my-model", "--input", "data=data")
    assert (started.returncode, "Uploading" in started.stderr) == (0, True), started.stderr
    brought = steerboard(url, token, "models", "import", "./my-model", "--role", "sft", "--no-wait")
    assert (brought.returncode, "Uploading" in brought.stderr) == (0, False), brought.stderr
    assert "Started the import my-model" in brought.stdout
    with transaction(sessions) as session:
        first, second = session.scalars(select(Run).where(Run.kind == "base").order_by(Run.id)).all()
    assert first.config["source"] == second.config["source"]
    assert (second.name, second.config["role"]) == ("my-model", "sft")


@pytest.mark.parametrize(
    ("place", "name"), [("./quantised", "quantised"), ("./several/b.gguf", "b")], ids=["a folder", "a file"]
)
def test_a_gguf_file_is_uploaded_alone(
    steerboard: Steerboard,
    url: str,
    token: str,
    folder: Path,
    sessions: sessionmaker[Session],
    project: Project,
    place: str,
    name: str,
) -> None:
    for path in ("quantised/a.gguf", "several/a.gguf", "several/b.gguf"):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(gguf())
    (folder / "quantised" / "config.json").write_text("{}")
    done = steerboard(url, token, "models", "import", place, "--no-wait")
    assert (done.returncode, "Uploading" in done.stderr) == (0, True), done.stderr
    with transaction(sessions) as session:
        run = session.scalars(select(Run).where(Run.kind == "base")).one()
        manifest = finished(session, project, run.config["source"])
    assert run.name == name
    assert [file["path"] for file in manifest.files] == ["b.gguf" if name == "b" else "a.gguf"]


def test_of_several_gguf_files_none_is_guessed(steerboard: Steerboard, url: str, token: str, folder: Path) -> None:
    (folder / "several").mkdir()
    for name in ("a.gguf", "b.gguf"):
        (folder / "several" / name).write_bytes(gguf())
    done = steerboard(url, token, "models", "import", "./several")
    assert (done.returncode, "2 GGUF files: a.gguf, b.gguf" in done.stderr) == (1, True), done.stderr


def test_a_gguf_file_that_is_cut_off_is_not_sent(steerboard: Steerboard, url: str, token: str, folder: Path) -> None:
    (folder / "cut.gguf").write_bytes(gguf()[:-1])
    done = steerboard(url, token, "models", "import", "./cut.gguf")
    assert (done.returncode, "Uploading" in done.stderr) == (1, False)
    assert "cut.gguf is cut off or damaged" in done.stderr


def test_nothing_is_uploaded_for_a_recipe_that_would_be_refused_anyway(
    steerboard: Steerboard, url: str, token: str, folder: Path
) -> None:
    done = steerboard(url, token, "run", "recipe.yaml", "--set", "base=./my-model", "--set", "data=nothing")
    assert (done.returncode, "Uploading" in done.stderr) == (2, False)
    assert "there is no dataset `nothing`" in done.stderr


def test_a_folder_that_is_no_model_is_said_here(steerboard: Steerboard, url: str, token: str, folder: Path) -> None:
    (folder / "my-model" / "config.json").unlink()
    done = steerboard(url, token, "run", "recipe.yaml", "--set", "base=./my-model", "--set", "data=data")
    assert (done.returncode, "has no config.json" in done.stderr) == (1, True), done.stderr
