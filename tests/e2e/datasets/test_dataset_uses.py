"""A dataset's page leads to the form of a run that takes it."""

from __future__ import annotations

import pytest
from page_checks import faults_of, told
from playwright.sync_api import Page, expect
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets.tables import Dataset
from steerboard.platform.database import transaction


@pytest.fixture
def datasets(sessions: sessionmaker[Session], project: Project) -> None:
    with transaction(sessions) as session:
        for name, held_out in (("pairs", 2), ("unseen", 9)):
            values = {"rows": 9, "held_out_rows": held_out, "content_hash": name, "origin": {}}
            session.add(Dataset(project_id=project.id, name=name, kind="preferences", **values))


@pytest.mark.usefixtures("datasets")
def test_a_method_is_chosen_among_those_that_take_the_dataset(rows_page: Page) -> None:
    page = rows_page
    page.goto("/p/default/datasets/pairs")
    page.get_by_role("link", name="Use it").click()
    expect(page.get_by_role("heading", level=1, name="Use pairs")).to_be_visible()
    cards = page.get_by_role("main").locator(".mantine-Card-root")
    expect(cards.first).to_contain_text("recommended")
    expect(cards.filter(has_text="Supervised fine-tuning")).to_have_count(0)  # it learns from instructions
    faults = faults_of(page, "dataset-uses")
    page.get_by_role("textbox", name="Find a method").fill("dpo")
    page.get_by_role("link", name="Align with DPO", exact=True).click()
    page.wait_for_url("**/launch/dpo?data=pairs")
    assert not faults, told(faults)


@pytest.mark.usefixtures("datasets")
def test_a_dataset_without_training_rows_is_offered_no_training(rows_page: Page) -> None:
    page = rows_page
    page.goto("/p/default/launch?data=unseen")
    expect(page.get_by_role("main")).to_contain_text("0 rows to train on, 9 held out")
    expect(page.get_by_role("link", name="Align with DPO", exact=True)).to_have_count(0)
