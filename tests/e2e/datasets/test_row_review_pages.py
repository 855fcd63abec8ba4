"""Rows are edited, flagged and commented where they are read, and become a new version."""

from __future__ import annotations

import re

import pytest
from fastapi.testclient import TestClient
from page_checks import faults_of, told
from playwright.sync_api import Page, expect
from test_version_pages import BASE, ROWS, import_rows


@pytest.fixture
def pairs(client: TestClient) -> None:
    import_rows(client, "pairs", [{**row, "margin": 1.5} for row in ROWS])


@pytest.mark.usefixtures("pairs")
def test_rows_are_edited_removed_flagged_and_made_into_a_version(client: TestClient, rows_page: Page) -> None:
    page = rows_page
    page.goto("/p/default/datasets/pairs?row=3")
    drawer = page.get_by_role("dialog", name="Row 3")
    expect(drawer.get_by_role("button", name="Edit (e)")).to_be_enabled()
    page.keyboard.press("e")
    chosen = drawer.get_by_role("textbox", name="chosen")
    chosen.fill("Yes, 3 is surely one.")
    expect(drawer.get_by_role("status")).to_have_text("Saved for the next version")
    # The server has it already.
    kept = client.get(f"{BASE}/pairs/review/rows/3").json()["change"]
    assert (kept["action"], kept["sample"]["chosen"]) == ("edit", "Yes, 3 is surely one.")
    drawer.get_by_role("textbox", name="rejected").fill(" ")
    expect(drawer.get_by_role("status")).to_have_text("Not saved")
    expect(drawer.get_by_text("is empty")).to_be_visible()
    page.keyboard.press("Escape")
    leaving = page.get_by_role("dialog", name="Leave what is not saved?")
    leaving.get_by_role("button", name="Cancel").click()
    expect(leaving).to_have_count(0)
    faults = faults_of(page, "row editor")
    drawer.get_by_role("textbox", name="rejected").fill("No, 3 is odd.")
    drawer.get_by_role("textbox", name="margin").fill("")
    expect(drawer.get_by_role("status")).to_have_text("Saved for the next version")
    drawer.get_by_role("button", name="Done").click()
    expect(drawer.get_by_role("group", name="chosen after").locator("mark")).to_have_text(["surely ", "one"])
    expect(drawer.get_by_role("group", name="margin after")).to_have_text("none")

    page.keyboard.press("j")
    drawer = page.get_by_role("dialog", name="Row 4")
    expect(drawer.get_by_role("button", name="Remove (x)")).to_be_enabled()
    page.keyboard.press("x")
    expect(drawer.get_by_text("Not in the next version")).to_be_visible()
    page.keyboard.press("j")
    drawer = page.get_by_role("dialog", name="Row 5")
    expect(drawer.get_by_role("button", name="Swap sides")).to_be_enabled()
    page.keyboard.press("f")
    drawer.get_by_role("textbox", name="Reason").fill("doubtful")
    page.keyboard.press("Enter")
    expect(drawer.get_by_role("alert")).to_contain_text("doubtful")
    drawer.get_by_role("textbox", name="Comment on this row").fill("Who says so?")
    drawer.get_by_role("button", name="Comment").click()
    expect(drawer.get_by_role("region", name="Comments")).to_contain_text("Who says so?")
    faults |= faults_of(page, "row review")
    page.keyboard.press("Escape")
    rows = page.get_by_role("table", name="Rows")
    expect(rows.get_by_role("img", name="changed")).to_have_count(1)
    expect(rows.get_by_role("img", name="to be removed")).to_have_count(1)
    page.get_by_role("combobox", name="Marked").click()
    page.get_by_role("option", name="Flagged").click()
    expect(page).to_have_url(re.compile("marked=flagged"))
    expect(rows.get_by_role("link", name=re.compile("^Row "))).to_have_count(1)
    expect(rows.get_by_role("img", name="flagged")).to_have_count(1)
    faults |= faults_of(page, "marked rows")

    page.get_by_role("tab", name="Pending (2)").click()
    pending = page.get_by_role("list", name="Pending changes").get_by_role("listitem")
    expect(pending).to_have_count(2)
    expect(page.get_by_text("1 row edited and 1 row removed by ann")).to_be_visible()
    faults |= faults_of(page, "pending")
    page.get_by_role("button", name="Make a version with 2 changes").click()
    expect(page.get_by_text("29 pairs in pairs-edited-1")).to_be_visible()
    page.get_by_role("link", name="Open the dataset").click()
    expect(page.get_by_text("edited from pairs")).to_be_visible()
    page.goto("/p/default/datasets/pairs-edited-1?marked=commented")
    expect(rows.get_by_role("link", name="Row 4")).to_be_visible()
    assert not faults, told(faults)


@pytest.mark.usefixtures("pairs")
def test_a_row_that_someone_else_changed_is_not_overwritten_and_all_changes_are_discarded(
    client: TestClient, rows_page: Page
) -> None:
    page = rows_page
    page.goto("/p/default/datasets/pairs?row=3")
    drawer = page.get_by_role("dialog", name="Row 3")
    expect(drawer.get_by_role("button", name="Swap sides")).to_be_enabled()
    other = client.put(f"{BASE}/pairs/review/rows/3/change", json={"action": "remove"})
    assert other.status_code == 200
    drawer.get_by_role("button", name="Swap sides").click()
    expect(drawer.get_by_role("alert")).to_contain_text("was changed by someone else")
    drawer.get_by_role("button", name="Try again").click()
    expect(drawer.get_by_text("Not in the next version")).to_be_visible()
    drawer.get_by_role("button", name="Undo").click()
    expect(drawer.get_by_text("Not in the next version")).to_have_count(0)
    drawer.get_by_role("button", name="Swap sides").click()
    expect(drawer.get_by_text("Flipped for the next version")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("tab", name="Pending (1)").click()
    page.get_by_role("button", name="Discard all").click()
    page.get_by_role("dialog", name="Discard 1 change?").get_by_role("button", name="Discard").click()
    expect(page.get_by_role("heading", name="No pending changes")).to_be_visible()
    assert client.get(f"{BASE}/pairs/review").json()["flipped"] == 0
