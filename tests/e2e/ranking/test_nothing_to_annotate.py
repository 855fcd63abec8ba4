"""The page Annotate of a project without campaigns."""

from __future__ import annotations

from page_checks import faults_of, told
from playwright.sync_api import Page, expect


def test_it_begins_a_campaign(rows_page: Page) -> None:
    page = rows_page
    page.goto("/p/default/rank")
    expect(page.get_by_role("heading", name="Nothing is waiting for you")).to_be_visible()
    faults = faults_of(page, "annotate-empty")
    page.get_by_role("main").get_by_role("button", name="New campaign").click()
    expect(page.get_by_role("combobox", name="Evaluation")).to_have_attribute("placeholder", "No evaluations yet")
    assert not faults, told(faults)
