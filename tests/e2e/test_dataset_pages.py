"""Rows of datasets, as a person reads them."""

from __future__ import annotations

import json

from dashboard_world import World
from playwright.sync_api import Page, expect

LINE = "a word and another one that goes on, "


def test_a_large_row_shows_its_beginning_and_offers_all_of_it(page: Page, world: World) -> None:
    whole = LINE * 20_000 + "and this is the end"
    rows = [{"prompt": f"Tell me all of {at}.", "response": whole if at == 1 else "Briefly."} for at in range(3)]
    world.import_rows("long-answers", "instructions", rows)
    page.goto("/p/default/datasets/long-answers?row=1")
    drawer = page.get_by_role("dialog")
    notice = drawer.get_by_role("alert")
    expect(notice).to_contain_text("too long to be shown in full")
    expect(drawer).to_contain_text(LINE * 3)
    expect(drawer).not_to_contain_text("this is the end")
    with page.expect_download() as download:
        notice.get_by_role("link", name="Download all of it").click()
    assert download.value.suggested_filename == "long-answers-row-1.json"
    (row,) = json.loads(download.value.path().read_text())["items"]
    assert row["sample"]["response"] == whole
    page.keyboard.press("j")
    expect(drawer).to_contain_text("Briefly.")
    expect(notice).to_have_count(0)
