"""A training form that makes one dataset from several, by weight."""

from __future__ import annotations

import re
from collections import Counter

from dashboard_world import World
from page_checks import faults_of
from page_fields import choose
from playwright.sync_api import Page, expect


def _pairs(what: str, count: int) -> list[dict[str, str]]:
    return [{"prompt": f"{what} {i}?", "chosen": f"Yes, {what}.", "rejected": f"No {what}."} for i in range(count)]


def test_pairs_of_two_datasets_are_mixed_by_weight_and_chosen(page: Page, world: World) -> None:
    world.import_rows("polite-pairs", "preferences", _pairs("tea", 60))
    world.import_rows("blunt-pairs", "preferences", _pairs("gravel", 20))
    page.goto("/p/default/launch/dpo")
    choose(page, "data", "^polite-pairs")
    page.get_by_role("button", name="Mix several datasets").click()
    dialog = page.get_by_role("dialog", name="Mix datasets")
    second = dialog.get_by_role("group", name="Dataset 2")
    second.get_by_role("combobox").click()
    page.get_by_role("option", name=re.compile("^blunt-pairs")).click()
    rows = dialog.get_by_label("Rows")
    expect(rows).to_have_value("40")
    dialog.get_by_role("group", name="Dataset 1").get_by_label("Weight").fill("3")
    expect(rows).to_have_value("80")
    expect(second).to_contain_text("20 of 20")
    assert not faults_of(page, "mix-dialog")
    dialog.get_by_role("button", name="Mix", exact=True).click()
    expect(dialog).to_have_count(0)
    data = page.get_by_role("main").get_by_label(re.compile("^data"))
    expect(data).not_to_have_value(re.compile("^polite-pairs"))
    made = data.input_value().split(" · ")[0]
    samples = world.get(f"datasets/{made}/samples?limit=100")["items"]
    assert Counter(row["sample"]["source"] for row in samples) == {"polite-pairs": 60, "blunt-pairs": 20}
