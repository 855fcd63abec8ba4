"""The page Annotate of a project without campaigns."""

from __future__ import annotations

from page_checks import faults_of, told
from playwright.sync_api import Page, expect


def test_it_leads_to_where_people_are_asked(rows_page: Page) -> None:
    page = rows_page
    page.goto("/p/default/rank")
    expect(page.get_by_role("heading", name="Nothing is waiting for you")).to_be_visible()
    faults = faults_of(page, "annotate-empty")
    page.get_by_role("main").get_by_role("link", name="Choose an evaluation").click()
    expect(page.get_by_role("heading", level=1, name="Evaluations")).to_be_visible()
    assert not faults, told(faults)
