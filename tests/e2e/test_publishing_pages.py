"""The page of a project's trackers, the dialogs that push to a hub, export as GGUF or import a history, and comments
on what a pipeline made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from page_checks import faults_of, told
from playwright.sync_api import Page, expect
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.runs.results import outputs
from steerboard.runs.tables import Run
from steerboard_contracts.files.gguf_export import GgufResult
from steerboard_contracts.stage.outputs import GgufOutput
from support.rows.evaluation_rows import Evaluated
from support.rows.pipeline_models import pipeline_with_models


@pytest.fixture
def models(sessions: sessionmaker[Session], project: Project) -> None:
    """The pipeline `talk` and its model `talk.dt`."""
    pipeline_with_models(Evaluated(sessions, project, name="e", prompts=1), "talk", {"dt": "policy"})


def test_a_tracker_is_added_stopped_and_deleted(rows_page: Page) -> None:
    page = rows_page
    page.goto("/p/default/settings/trackers")
    expect(page.get_by_text("No trackers yet")).to_be_visible()
    faults = faults_of(page, "trackers-empty")
    page.get_by_role("button", name="Add a tracker").click()
    form = page.get_by_role("dialog")
    form.get_by_label("Name").fill("curves")
    expect(form.get_by_label("URL")).to_be_visible()
    faults |= faults_of(page, "trackers-form")
    form.get_by_text("TensorBoard", exact=True).click()
    form.get_by_role("button", name="Add", exact=True).click()
    card = page.get_by_role("listitem").filter(has_text="curves")
    expect(card).to_contain_text("Nothing has been exported yet")
    faults |= faults_of(page, "trackers")
    assert not faults, told(faults)
    card.get_by_label("curves is active").click()
    expect(card.get_by_label("curves is active")).not_to_be_checked()
    page.reload()
    expect(card.get_by_label("curves is active")).not_to_be_checked()
    card.get_by_role("button", name="Delete curves").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No trackers yet")).to_be_visible()


def test_a_model_is_pushed_after_its_card_was_seen(rows_page: Page, models: None) -> None:
    page = rows_page
    page.goto("/p/default/models/talk.dt")
    page.get_by_role("button", name="Push to a hub").click()
    dialog = page.get_by_role("dialog", name="Push talk.dt to a hub")
    push = dialog.get_by_role("button", name="Push", exact=True)
    repository = dialog.get_by_role("textbox", name="Repository")
    repository.fill("no owner")
    expect(dialog.get_by_text("Write org/name")).to_be_visible()
    expect(push).to_be_disabled()
    repository.fill("ann/talk")
    expect(dialog.get_by_label("Preview of the card")).to_contain_text("talk")
    expect(dialog.get_by_label("Private")).to_be_checked()
    faults = faults_of(page, "push-dialog")
    assert not faults, told(faults)
    push.click()
    page.wait_for_url("**/runs/**")


@pytest.mark.parametrize(("kind", "name"), [("pipeline", "talk"), ("model", "talk.dt")])
def test_what_a_pipeline_made_is_commented_on(rows_page: Page, models: None, kind: str, name: str) -> None:
    page = rows_page
    page.goto(f"/p/default/{kind}s/{name}")
    thread = page.get_by_role("region", name="Comments")
    thread.get_by_label(f"Comment on this {kind}").fill("Keep **this**.")
    thread.get_by_role("button", name="Comment", exact=True).click()
    expect(thread.locator("strong", has_text="this")).to_be_visible()


def test_a_run_of_another_trainer_is_imported_and_shown(rows_page: Page, tmp_path: Path) -> None:
    page, file = rows_page, tmp_path / "trainer_state.json"

    log = [{"loss": 1 / step, "learning_rate": 1e-5, "eval_loss": 2 / step, "step": step} for step in range(1, 30)]
    file.write_text(json.dumps({"log_history": log, "max_steps": 29}))
    page.goto("/p/default/runs")
    page.get_by_role("button", name="Import a history").click()
    dialog = page.get_by_role("dialog", name="Import a history")
    expect(dialog.get_by_role("button", name="Import", exact=True)).to_be_disabled()
    dialog.locator("input[type=file]").set_input_files(file)
    dialog.get_by_label("Name").fill("trl-dpo")
    faults = faults_of(page, "import-history")
    dialog.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_role("heading", name="trl-dpo")).to_be_visible()
    expect(page.get_by_text("eval_loss").first).to_be_visible()
    faults |= faults_of(page, "history")
    assert not faults, told(faults)


def test_a_model_is_exported_as_gguf_by_a_run_and_downloaded_from_its_page(
    rows_page: Page,
    models: None,
    sessions: sessionmaker[Session],
    project: Project,
    store: ArtifactStore,
    tmp_path: Path,
) -> None:
    page = rows_page
    page.goto("/p/default/models/talk.dt")
    page.get_by_role("button", name="Export as GGUF").click()
    dialog = page.get_by_role("dialog", name="Export talk.dt as GGUF")
    dialog.get_by_label("Q8_0").check()
    faults = faults_of(page, "gguf-form")
    dialog.get_by_role("button", name="Export", exact=True).click()
    expect(page.get_by_role("heading", name="gguf-talk.dt")).to_be_visible()
    with transaction(sessions) as session:
        run = session.scalars(select(Run).where(Run.kind == "gguf", Run.project_id == project.id)).one()
        (tmp_path / "gguf").mkdir()
        (tmp_path / "gguf" / "talk.dt-q8_0.gguf").write_bytes(b"GGUF")
        result = GgufResult(
            file="talk.dt-q8_0.gguf", precision="q8_0", size=4, architecture="x", merged=False, prompts=3, tokens=16
        )
        outputs.register(session, store, run, {}, [GgufOutput(path="gguf", result=result)], tmp_path)
        run.state = "succeeded"
    page.goto("/p/default/models/talk.dt")
    page.get_by_role("button", name="Export as GGUF").click()
    finished = dialog.get_by_role("table", name="Finished exports")
    expect(finished).to_contain_text("llama.cpp renders, tokenises and answers as transformers does")
    faults |= faults_of(page, "gguf-finished")
    with page.expect_download() as download:
        finished.get_by_role("link", name="talk.dt-q8_0.gguf").click()
    assert Path(download.value.path()).read_bytes() == b"GGUF"
    assert not faults, told(faults)
