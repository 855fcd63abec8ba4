"""Rows of datasets, as a person reads them."""

from __future__ import annotations

import json
import re

from dashboard_world import World
from page_checks import faults_of, told
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


def test_pairs_are_counted_by_rule_with_examples_and_then_cleaned_into_a_new_version(page: Page, world: World) -> None:
    long = " ".join(f"word{at}" for at in range(90))
    rows = [
        {"prompt": f"Is {at} even?", "chosen": "Yes." if at % 2 == 0 else "No.", "rejected": "Who knows."}
        for at in range(12)
    ]
    rows += [rows[0], {"prompt": "Is 1 even?", "chosen": "Who knows.", "rejected": "No."}]
    rows += [
        {"prompt": "Count.", "chosen": long, "rejected": "No."},
        {"prompt": "Count.", "chosen": long.replace("word40", "another"), "rejected": "No."},
    ]
    body = "".join(json.dumps(row) + "\n" for row in rows).encode()
    made = world.client.post(
        "datasets/import", data={"name": "noisy", "clean": "false"}, files={"file": ("noisy.jsonl", body)}
    )
    made.raise_for_status()
    page.goto("/p/default/datasets/noisy")
    page.get_by_role("tab", name="Cleaning").click()
    status = page.get_by_role("status")
    expect(status).to_contain_text("12 of 16 pairs are kept")
    near = page.get_by_role("group", name="Near duplicate")
    expect(near).to_contain_text("1 pair")
    near.get_by_role("button", name="Examples").click()
    expect(near).to_contain_text("Row 15 repeats row 14, 89% alike")
    contradiction = page.get_by_role("group", name="Contradiction")
    expect(contradiction).to_contain_text("2 pairs")
    contradiction.get_by_role("switch").uncheck()
    expect(contradiction).to_contain_text("off")
    expect(status).to_contain_text("14 of 16 pairs are kept")
    faults = faults_of(page, "cleaning")
    page.get_by_role("button", name="Clean", exact=True).click()
    expect(page.get_by_text("14 pairs in noisy-clean-1")).to_be_visible()
    page.get_by_role("link", name="Open the dataset").click()
    expect(page.get_by_role("heading", name="noisy-clean-1")).to_be_visible()
    expect(page.get_by_text("cleaned from noisy")).to_be_visible()
    page.get_by_role("tab", name="Dropped").click()
    expect(page.get_by_text("2 of the 16 rows of noisy are not in this version")).to_be_visible()
    expect(page.get_by_text("Row 12 repeats row 0")).to_be_visible()
    faults |= faults_of(page, "dropped")
    page.get_by_role("tab", name="Cleaning").click()
    page.get_by_role("group", name="Contradiction").get_by_role("switch").uncheck()
    expect(page.get_by_role("button", name="Nothing to clean")).to_be_disabled()
    assert not faults, told(faults)


def test_methods_are_picked_by_what_they_would_learn_and_launched_after_a_conversion(page: Page, world: World) -> None:
    rows = [
        {"prompt": f"Tell me of {at}.", "response": f"Answer {n}.", "reward": float(n)}
        for at in range(30)
        for n in range(3)
    ]
    world.import_rows("rated", "labelled", rows)
    page.goto("/p/default/datasets/rated")
    page.get_by_role("tab", name="Methods").click()
    as_it_is = page.get_by_role("region", name="Fit as it is")
    expect(as_it_is.get_by_role("row").filter(has_text="Reward-weighted regression")).to_be_visible()
    expect(as_it_is.get_by_role("link", name="Launch Reward-weighted regression")).to_have_attribute(
        "href", "/p/default/launch/rwr?data=rated"
    )
    converted = page.get_by_role("region", name="Fit after a conversion")
    expect(converted.get_by_role("region", name="Pairs from ranks")).to_contain_text(
        "90 rows become 90 preferences: 0 lost, 0 gained, 0 tied"
    )
    extremes = converted.get_by_role("region", name="Best against worst")
    expect(extremes).to_contain_text("90 rows become 30 preferences: 30 lost (30 between the best and the worst)")
    faults = faults_of(page, "methods")
    extremes.get_by_role("button", name=re.compile("^DPO:")).click()
    expect(page).to_have_url("/p/default/launch/dpo?data=rated-best-against-worst-1")
    expect(page.get_by_role("combobox", name="data")).to_have_value(re.compile("^rated-best-against-worst-1 "))
    page.goto("/p/default/datasets/rated-best-against-worst-1")
    expect(page.get_by_text("converted from rated")).to_be_visible()
    expect(page.get_by_role("tab", name="Dropped")).to_have_count(0)
    assert not faults, told(faults)
