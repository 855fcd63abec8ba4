"""A model from a folder of the visitor's machine, in the browser: checked, uploaded, and brought in by a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from page_checks import faults_of
from playwright.sync_api import Page, expect
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from steerboard.registry.uploads.service import finished
from steerboard.runs.tables import Run, WorkerRow
from support.models.model_folders import safetensors

CONFIG = {"architectures": ["LlamaForSequenceClassification"], "id2label": {"0": "harmful", "1": "helpful"}}


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
    for fact in ("LlamaForSequenceClassification", "its own", "apache-2.0", "large-1: 200.2 kB of weights fit into"):
        expect(dialog.get_by_text(fact)).to_be_visible()
    expect(dialog.get_by_text("small-1: 200.2 kB of weights are too large for 100.0 kB of memory")).to_be_visible()
    assert faults_of(page, "import of a model") == {}
    dialog.get_by_role("combobox", name="The label that is the reward").click()
    page.get_by_role("option", name="1: helpful").click()
    dialog.get_by_label("Name here").fill("helpful")
    dialog.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_role("heading", name="helpful")).to_be_visible()
    with transaction(sessions) as session:
        (run,) = session.scalars(select(Run)).all()
        manifest = finished(session, project, run.config["source"])
    assert (run.kind, run.name, run.config["label"]) == ("base", "helpful", 1)
    assert {file["path"] for file in manifest.files} == {"config.json", "model.safetensors", "chat_template.jinja"}


def test_a_folder_without_safetensors_is_refused_before_it_is_sent(rows_page: Page, folder: Path) -> None:
    page = rows_page
    (folder / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    page.goto("/p/default/models")
    page.get_by_role("button", name="Import a model").click()
    page.get_by_label("Folder", exact=True).set_input_files(folder)
    expect(page.get_by_text("It has no .safetensors file; pickled weights are not taken.")).to_be_visible()
    expect(page.get_by_role("button", name="Import", exact=True)).to_be_disabled()
