"""A model from a folder of the visitor's machine, in the browser: checked, uploaded, and imported by a run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from page_checks import faults_of
from playwright.sync_api import Locator, Page, expect
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from steerboard.registry.uploads.service import finished
from steerboard.runs.tables import Run, WorkerRow
from support.models.model_folders import gguf, safetensors
from support.servers.hub_server import HubModels, hub_of_models

SHAPE = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 192,
    "vocab_size": 512,
}
CONFIG = {**SHAPE, "architectures": ["LlamaForSequenceClassification"], "id2label": {"0": "harmful", "1": "helpful"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "a reward model"
    (made / "sub").mkdir(parents=True)
    (made / "config.json").write_text(json.dumps({**CONFIG, "dtype": "bfloat16"}))
    (made / "model.safetensors").write_bytes(safetensors(bytes(100_000)))
    (made / "chat_template.jinja").write_text("{{ messages }}")
    (made / "README.md").write_text("---\nlicense: apache-2.0\n---\n# Card\n")
    (made / "train.py").write_text("raise SystemExit")
    (made / "sub" / "config.json").write_text("{}")
    return made


def test_a_folder_is_checked_uploaded_and_brought_in(
    rows_page: Page, folder: Path, sessions: sessionmaker[Session], project: Project
) -> None:
    page = rows_page
    with transaction(sessions) as session:
        for name, memory in (("large-1", 8 << 30), ("small-1", 100_000)):
            devices = {"ids": [], "gpus": [], "memory": memory}
            session.add(WorkerRow(name=name, pool="default", host="h", pid=1, devices=devices))
    page.goto("/p/default/models")
    page.get_by_role("button", name="Import a model").click()
    dialog = page.get_by_role("dialog", name="Import a model")
    expect(dialog.get_by_role("button", name="Import", exact=True)).to_be_disabled()
    dialog.get_by_label("Folder", exact=True).set_input_files(folder)
    for fact in ("LlamaForSequenceClassification", "its own", "apache-2.0"):
        expect(dialog.get_by_text(fact)).to_be_visible()
    fits(dialog, "large-1, 8.6 GB of memory", "fits")
    fits(dialog, "small-1, 100.0 kB of memory", "is too large")
    assert faults_of(page, "import of a model") == {}
    dialog.get_by_role("combobox", name="The label that is the reward").click()
    page.get_by_role("option", name="1: helpful").click()
    dialog.get_by_label("Name in the project").fill("helpful")
    dialog.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_role("heading", name="helpful")).to_be_visible()
    with transaction(sessions) as session:
        (run,) = session.scalars(select(Run)).all()
        manifest = finished(session, project, run.config["source"])
    assert (run.kind, run.name, run.config["label"]) == ("base", "helpful", 1)
    assert {file["path"] for file in manifest.files} == {"config.json", "model.safetensors", "chat_template.jinja"}


def fits(dialog: Locator, worker: str, verdict: str) -> None:
    """All three uses of the model have the verdict for the worker."""
    shown = dialog.locator("div", has=dialog.page.get_by_text(worker, exact=True)).last
    for use in ("Training", "LoRA", "Inference"):
        expect(shown.get_by_text(re.compile(rf"^{use} [\d.]+ [MG]B {verdict}$"))).to_be_visible()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubModels]:
    with hub_of_models(monkeypatch) as hub:
        yield hub


def test_a_hub_model_is_checked_before_its_download(
    rows_page: Page, folder: Path, hub: HubModels, sessions: sessionmaker[Session]
) -> None:
    page = rows_page
    hub.models["org/small"] = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    hub.cards["org/small"] = {"license": "mit"}
    with transaction(sessions) as session:
        devices = {"ids": [], "gpus": [], "memory": 8 << 30}
        session.add(WorkerRow(name="large-1", pool="default", host="h", pid=1, devices=devices))
    page.goto("/p/default/models")
    page.get_by_role("button", name="Import a model").click()
    dialog = page.get_by_role("dialog", name="Import a model")
    dialog.get_by_role("tab", name="The hub").click()
    name = dialog.get_by_label("Name on the Hugging Face hub")
    name.fill("org/nothing")
    dialog.get_by_role("button", name="Check its size and fit").click()
    expect(dialog.get_by_text("the hub has no model org/nothing, or it is private")).to_be_visible()
    name.fill("org/small")
    dialog.get_by_role("button", name="Check its size and fit").click()
    for fact in ("LlamaForSequenceClassification", "its own", "mit", "cccccccccccc"):
        expect(dialog.get_by_text(fact, exact=True)).to_be_visible()
    fits(dialog, "large-1, 8.6 GB of memory", "fits")
    assert faults_of(page, "fit of a hub model") == {}


def test_one_of_several_gguf_files_is_chosen_and_sent_alone(
    rows_page: Page, folder: Path, sessions: sessionmaker[Session], project: Project
) -> None:
    page = rows_page
    (folder / "model.safetensors").unlink()
    for name in ("a.gguf", "b.gguf"):
        (folder / name).write_bytes(gguf())
    page.goto("/p/default/models")
    page.get_by_role("button", name="Import a model").click()
    dialog = page.get_by_role("dialog", name="Import a model")
    dialog.get_by_label("Folder", exact=True).set_input_files(folder)
    choice = dialog.get_by_role("combobox", name="The GGUF file")
    expect(choice).to_have_value("")
    expect(dialog.get_by_role("button", name="Import", exact=True)).to_be_disabled()
    choice.click()
    page.get_by_role("option", name="b.gguf").click()
    expect(dialog.get_by_text("as a GGUF file")).to_be_visible()
    assert faults_of(page, "import of a GGUF file") == {}
    dialog.get_by_label("Name in the project").fill("quantised")
    dialog.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_role("heading", name="quantised")).to_be_visible()
    with transaction(sessions) as session:
        (run,) = session.scalars(select(Run)).all()
        manifest = finished(session, project, run.config["source"])
    assert [file["path"] for file in manifest.files] == ["b.gguf"]


def test_a_folder_without_safetensors_is_refused_before_it_is_sent(rows_page: Page, folder: Path) -> None:
    page = rows_page
    (folder / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    page.goto("/p/default/models")
    page.get_by_role("button", name="Import a model").click()
    page.get_by_label("Folder", exact=True).set_input_files(folder)
    expect(
        page.get_by_text("It has no .safetensors file and no .gguf file; pickled weights are not taken.")
    ).to_be_visible()
    expect(page.get_by_role("button", name="Import", exact=True)).to_be_disabled()
