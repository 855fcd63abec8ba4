"""Datasets in the browser: from a file with faults to rows that are found."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from dashboard_world import World
from page_checks import faults_of
from page_fields import choose
from playwright.sync_api import BrowserContext, Page, expect


@pytest.mark.long
def test_bad_rows_are_named_and_the_rest_imports_when_asked(
    page: Page, context: BrowserContext, tmp_path: Path, world: World
) -> None:
    file = tmp_path / "pairs.jsonl"
    good = '{"riddle": "Is tea %d hot?", "chosen": "Yes, very.", "rejected": "No idea."}\n'
    file.write_text("".join(good % n for n in range(4)) + '{"riddle": "Broken?", "chosen": "Yes"\n' + good % 9)
    page.goto("/p/default/datasets")
    page.get_by_role("link", name="Import", exact=True).click()
    page.set_input_files("input[type=file]", file)
    page.get_by_label("Name of the dataset").fill("tea")
    # The prompt's column has no name that is known: the page offers the columns, and shows the result.
    choose(page, "prompt", "^riddle")
    preview = page.get_by_role("group", name="Preview")
    expect(preview).to_contain_text("Is tea 0 hot?")
    expect(preview.get_by_role("alert")).to_have_count(1)
    page.get_by_role("button", name="Check all rows").click()
    bad = page.get_by_role("table", name="Rows that are not valid")
    # A process of its own reads the file; next to other tests its start alone can take long.
    expect(bad.get_by_role("row")).to_have_count(2)
    expect(bad.get_by_role("row").last).to_contain_text("5")
    expect(page.get_by_role("button", name="Import 5 rows")).to_be_disabled()
    with page.expect_download() as download:
        page.get_by_role("link", name="All of them as csv").click()
    assert "\n5," in download.value.path().read_text()
    # The tab is closed and another one opened: nothing is lost.
    address = page.url
    page.close()
    page = context.new_page()
    page.goto("/p/default/datasets")
    page.get_by_role("link", name="tea").click()
    expect(page).to_have_url(address)
    page.get_by_role("button", name="Back to the columns").click()
    expect(page.get_by_role("main").get_by_label(re.compile("^prompt"))).to_have_value(re.compile("riddle"))
    page.get_by_role("button", name="Check all rows").click()
    page.get_by_role("button", name="Skip 1 row").click()
    page.get_by_role("button", name="Import 5 rows").click()
    page.get_by_role("link", name="Open the dataset").click()
    expect(page.get_by_text("Is tea 0 hot?")).to_be_visible()
    assert world.get("datasets/tea")["rows"] == 5


def test_columns_that_nothing_uses_are_named_and_mapped_by_one_click(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "graded.jsonl"
    rows = ({"question": f"Hi {n}", "answer": "Hello.", "gpt4_score": n, "url": "http://x"} for n in range(4))
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    page.goto("/p/default/datasets")
    page.get_by_role("link", name="Import", exact=True).click()
    page.set_input_files("input[type=file]", file)
    expect(page.get_by_role("button", name=re.compile(r"^\d+ optional columns$"))).to_be_visible()
    unused = page.get_by_role("alert").filter(has_text="not used")
    expect(unused).to_contain_text("2 columns are not used")
    expect(unused).to_contain_text("url")
    unused.get_by_role("button", name="Use it as reward of labelled").click()
    expect(unused).to_contain_text("1 column is not used")
    expect(page.get_by_role("main").get_by_label(re.compile("^reward"))).to_have_value(re.compile("gpt4_score"))


@pytest.mark.long
def test_columns_become_attributes_of_rows_that_need_no_reward(page: Page, world: World, tmp_path: Path) -> None:
    file = tmp_path / "attributed.jsonl"
    rows = ({"question": f"Hi {n}", "answer": "Hello.", "helpful": n, "words": 2 * n} for n in range(4))
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    page.goto("/p/default/imports")
    page.set_input_files("input[type=file]", file)
    page.get_by_role("combobox", name="Kind").click()
    page.get_by_role("option", name="labelled").click()
    missing = page.get_by_text("no column was found for reward")
    expect(missing).to_be_visible()
    attributes = page.get_by_role("group", name="Attributes")
    for column, name in (("helpful", "helpfulness"), ("words", None)):
        attributes.get_by_label("Column of a new attribute").click()
        page.get_by_role("option", name=re.compile(f"^{column}")).click()
        if name:
            attributes.get_by_label("Name of a new attribute").fill(name)
        attributes.get_by_role("button", name="Add").click()
        expect(attributes.get_by_role("combobox", name=name or column, exact=True)).to_be_visible()
    expect(missing).to_be_hidden()
    attributes.get_by_role("button", name="Leave out words").click()
    expect(attributes.get_by_role("combobox", name="words", exact=True)).to_be_hidden()
    page.get_by_role("button", name="Use it as attributes.words of labelled").click()
    expect(page.get_by_role("group", name="Preview")).to_contain_text('{"helpfulness":1,"words":2}')
    assert faults_of(page, "attributes") == {}
    page.get_by_role("button", name="Check all rows").click()
    page.get_by_role("button", name="Import 4 rows").click()
    page.get_by_role("link", name="Open the dataset").click()
    page.get_by_role("link", name="Row 3", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("helpfulness 3")
    assert world.get("datasets/attributed")["rewards"] is None


def test_samples_are_searched_filtered_and_opened(page: Page, world: World) -> None:
    page.goto("/p/default/datasets/pairs")
    rows = page.get_by_role("table", name="Rows")
    expect(rows.get_by_role("row").filter(has_text="red 0")).to_be_visible()
    page.get_by_label("Search whole words").fill("lemon")
    expect(page.get_by_text("8 rows", exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile("q=lemon"))
    page.get_by_label("Search whole words").fill("lemo")
    expect(page.get_by_text("No matching rows")).to_be_visible()
    page.get_by_role("button", name="Show all").click()
    rows.get_by_role("link", name="Row 3", exact=True).click()
    drawer = page.get_by_role("dialog")
    expect(drawer.locator("mark.own-rejected")).to_have_text("No")
    page.keyboard.press("j")
    expect(drawer).to_contain_text("Row 4")
    expect(page).to_have_url(re.compile("row=4"))
    page.keyboard.press("Escape")
    expect(drawer).to_be_hidden()
    page.get_by_role("tab", name="Statistics").click()
    expect(page.get_by_role("table", name="Counts")).to_contain_text("Distinct prompts")
