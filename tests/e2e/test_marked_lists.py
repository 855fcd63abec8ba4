"""Lists of named things in the browser: searched by tags and notes, narrowed by link, archived and deleted."""

from __future__ import annotations

import pytest
from page_checks import faults_of, told
from playwright.sync_api import Page, expect
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.database import transaction
from steerboard.registry.tables import Model
from steerboard.runs.state import attempt_outcomes
from steerboard.runs.state.lifecycle import InputRef
from support.rows.run_world import World


@pytest.fixture
def world(sessions: sessionmaker[Session], project: Project) -> World:
    return World(sessions, project)


def named_model(world: World, name: str) -> None:
    made = world.model()
    with transaction(world.sessions) as session:
        session.get_one(Model, made).name = name


def test_models_are_found_by_their_marks_archived_and_deleted(rows_page: Page, world: World) -> None:
    page = rows_page
    for name in ("anna", "berta", "clara"):
        named_model(world, name)
    page.goto("/p/default/models/anna")
    page.get_by_role("button", name="Add tags or notes").click()
    page.get_by_role("combobox", name="Tags").fill("keep")
    page.keyboard.press("Enter")
    page.get_by_role("textbox", name="Notes").fill("Speaks of **whales**.")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".notes strong")).to_have_text("whales")
    page.get_by_role("button", name="Favourite anna").click()
    faults = faults_of(page, "model-marks")

    page.goto("/p/default/models")
    rows = page.get_by_role("table", name="Models, the newest first").locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.filter(has_text="anna").get_by_role("listitem")).to_have_text("keep")
    expect(rows.get_by_role("button", name="Favourite anna")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("textbox", name="Search names, tags and notes").fill("whales")
    expect(rows).to_have_count(1)
    faults |= faults_of(page, "model-list")
    page.goto("/p/default/models?tag=keep&favourite=true")
    expect(rows).to_have_count(1)
    expect(page.get_by_role("checkbox", name="Favourites")).to_be_checked()

    page.goto("/p/default/models/berta")
    page.get_by_role("button", name="Archive", exact=True).click()
    expect(page.get_by_role("button", name="Take it back from the archive")).to_be_visible()
    page.goto("/p/default/models")
    expect(rows).to_have_count(2)
    page.get_by_text("Archived", exact=True).click()
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("berta")

    page.goto("/p/default/models/clara")
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("button", name="Delete the model").click()
    page.wait_for_url("**/models")
    expect(rows).to_have_count(1)
    assert not faults, told(faults)


def test_a_pipeline_is_deleted_with_its_stages_and_not_while_one_is_under_way(rows_page: Page, world: World) -> None:
    page = rows_page
    pipeline = world.pipeline("gone")
    inputs = {"data": InputRef(dataset=world.dataset()), "model": InputRef(model=world.model())}
    world.create("stage", pipeline_id=pipeline, config={"run": "train", "method": "sft"}, inputs=inputs)
    claim = world.claim()
    assert claim is not None
    page.goto(f"/p/default/pipelines/{pipeline}")
    page.get_by_role("button", name="Delete", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Delete the pipeline").click()
    expect(dialog.get_by_role("alert")).to_contain_text("cannot be deleted")
    world.act(claim, lambda session, claimed: attempt_outcomes.succeed(session, claimed, {}, 2.0))
    dialog.get_by_role("button", name="Delete the pipeline").click()
    page.wait_for_url("**/pipelines")
    expect(page.get_by_text("No pipelines yet")).to_be_visible()
