"""Rows are searched by words or by any part of a text, and hits are marked where they are."""

from __future__ import annotations

import re

from fastapi.testclient import TestClient
from page_checks import faults_of, told
from playwright.sync_api import Page, expect
from test_version_pages import import_rows

LONG = "and so on, " * 60


def test_hits_are_marked_in_the_table_and_in_the_row(client: TestClient, rows_page: Page) -> None:
    rows = [{"prompt": f"What is {fruit}?", "chosen": f"{LONG}{fruit}!", "rejected": "No."} for fruit in FRUITS]
    import_rows(client, "fruits", rows)
    page = rows_page
    page.goto("/p/default/datasets/fruits")
    page.get_by_role("textbox", name="Search whole words").fill("nana")
    expect(page.get_by_role("heading", name="No matching rows")).to_be_visible()
    page.get_by_text("Any part").click()
    expect(page).to_have_url(re.compile("match=part"))
    page.reload()
    table = page.get_by_role("table", name="Rows")
    expect(table.locator("mark.hit")).to_have_text(["nana", "nana"])
    expect(table.get_by_role("cell").filter(has_text="…")).to_contain_text("banana!")
    faults = faults_of(page, "search")
    page.get_by_role("link", name="Row 1").click()
    drawer = page.get_by_role("dialog", name="Row 1")
    expect(drawer.locator("mark.hit")).to_have_text(["nana", "nana"])
    expect(drawer).to_contain_text(LONG)
    faults |= faults_of(page, "search row")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Views").click()
    page.get_by_role("menuitem", name="Save or manage views").click()
    page.get_by_role("textbox", name="Name").fill("bananas")
    page.get_by_role("button", name="Save the view").click()
    page.get_by_role("button", name="Views").click()
    page.get_by_role("menuitem", name="All rows").click()
    expect(table.get_by_role("link")).to_have_count(3)
    page.get_by_role("button", name="Views").click()
    page.get_by_role("menuitem", name="bananas").click()
    expect(page).to_have_url(re.compile("q=nana&match=part"))
    expect(page.get_by_role("textbox", name="Search any part")).to_have_value("nana")
    expect(table.locator("mark.hit")).to_have_text(["nana", "nana"])
    page.get_by_role("textbox", name="Search any part").fill("<>")
    expect(page.get_by_text("has no letter or digit to look for")).to_be_visible()
    assert not faults, told(faults)


FRUITS = ["an apple", "a banana", "a cherry"]
