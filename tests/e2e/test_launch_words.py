"""The launch form of a run names missing and wrong fields before anything is sent."""

from __future__ import annotations

from page_checks import faults_of, told
from playwright.sync_api import Page, expect


def test_the_footer_says_what_to_choose_and_what_to_correct(rows_page: Page) -> None:
    page = rows_page
    page.goto("/p/default/launch/grpo")
    expect(page.get_by_role("heading", name="Launch grpo")).to_be_visible()
    expect(page.get_by_text("Choose a model and data first.")).to_be_visible()
    page.get_by_role("textbox", name="batch", exact=True).fill("-3")
    expect(page.get_by_text("Correct batch first.")).to_be_visible()
    expect(page.get_by_text("Set batch first.")).to_have_count(0)
    # Code in the description of the kind is shown as code.
    assert "`" not in page.get_by_role("main").locator("h1").locator("xpath=../..").inner_text()
    faults = faults_of(page, "launch-words")
    assert not faults, told(faults)
